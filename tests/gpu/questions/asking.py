"""How a program asks and answers: lines of JSON on standard output, one before a question and one after it.

An answer is a yes or a no, a figure, or "cannot be asked here" and why, which is what becomes of each call that
fails: the next question is asked all the same. The line before names the question, so that whoever reads them
knows which one a program hung in.
"""

import json
import os
import statistics
import sys
import time
from dataclasses import dataclass, field

from libcuda import Refused, Unavailable

CANNOT = "cannot be asked here"
# More values than these are told by their median, quartiles and worst.
LISTED = 20


@dataclass(frozen=True)
class Figure:
    """What was measured, once a round."""

    unit: str
    rounds: list[float]


@dataclass(frozen=True)
class Said:
    """Yes or no, and what it was told from."""

    yes: bool
    why: str = ""
    figures: dict[str, Figure] = field(default_factory=dict)


class Asking:
    """What a program is told: whether CUDA is simulated, and about how long it may take."""

    def __init__(self, simulated: bool, seconds: float):
        self.simulated, self.seconds = simulated, seconds
        self._start = time.monotonic()
        # What torch prints is no answer.
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def left(self) -> float:
        """Seconds until no other question should be begun."""
        return self.seconds - (time.monotonic() - self._start)

    def ask(self, what: str, on: str, attempt, *, refusal_is_no: bool = False):
        """What `attempt` returns, a `Said` or a `Figure`, or None where it could not be asked or was refused. With
        `refusal_is_no` a call of CUDA that fails is the answer."""
        return self._try(what, on, attempt, _told, "no" if refusal_is_no else CANNOT)

    def tell(self, what: str, on: str, attempt) -> None:
        """What is known already, and takes no time any more."""
        self._try(what, on, attempt, _told, CANNOT, short=True)

    def need(self, what: str, on: str, make):
        """What `make` returns, which questions need; or None, and then that it cannot be had is said."""
        return self._try(what, on, make, lambda _: None, CANNOT)

    def _try(self, what: str, on: str, attempt, told, refused: str, short: bool = False):
        self._write(asking=what, on=on)
        result = None
        try:
            if self.left() <= 0 and not short:
                raise Unavailable("no time was left for it")
            result = attempt()
            line = told(result)
        except Refused as refusal:
            line = {"answer": refused, "why": str(refusal)}
        except Unavailable as unavailable:
            line = {"answer": CANNOT, "why": str(unavailable)}
        except (OSError, MemoryError, RuntimeError) as error:
            # The system or torch refuses; what else is asked may be answered.
            line = {"answer": CANNOT, "why": f"{type(error).__name__}: {error}"}
        except Exception as error:
            # The program is wrong: no trial passes with that, and no other answer is lost by it.
            line = {"answer": CANNOT, "why": f"{type(error).__name__}: {error}", "fault": True}
        if line:
            self._write(of=what, on=on, **line)
        return result if line is None or line["answer"] != CANNOT else None

    def _write(self, **line) -> None:
        print(json.dumps(line), file=self._answers, flush=True)


def _told(result) -> dict:
    if isinstance(result, Figure):
        return {"answer": "figure"} | _spread(result)
    line = {"answer": "yes" if result.yes else "no", "why": result.why}
    return line | {"figures": {name: _spread(one) for name, one in result.figures.items()}} if result.figures else line


def _spread(figure: Figure) -> dict:
    values = figure.rounds
    if not values:
        raise Unavailable("it did not happen while it was looked at")
    low, high = values[0], values[0]
    if len(values) > 1:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    told = {"unit": figure.unit, "median": statistics.median(values), "quartiles": [low, high]}
    told |= {"least": min(values), "most": max(values), "count": len(values)}
    return told | ({"rounds": values} if len(values) <= LISTED else {})


def main(ask) -> None:
    """The command line of a question: `question.py real|simulated SECONDS`."""
    it = Asking(sys.argv[1] == "simulated", float(sys.argv[2]))
    ask(it)
    # What is still pinned or runs goes with the process, and nobody waits for it to be torn down.
    sys.stderr.flush()
    os._exit(0)
