"""The protocol of question programs: lines of JSON on standard output, one before each question and one after it.

An answer is yes or no, a figure, or "cannot be asked here" with a reason, for each failing call; the next question
is asked all the same. The line before a question names it, so that a reader knows in which one a program hung.
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
        """Seconds during which another question may begin."""
        return self.seconds - (time.monotonic() - self._start)

    def ask(self, what: str, on: str, attempt, *, refusal_is_no: bool = False):
        """The result of `attempt`, a `Said` or a `Figure`, or None if it could not be asked or was refused. With
        `refusal_is_no` a failing CUDA call means no."""
        return self._try(what, on, attempt, _told, "no" if refusal_is_no else CANNOT)

    def tell(self, what: str, on: str, attempt) -> None:
        """Reports an answer that is already known."""
        self._try(what, on, attempt, _told, CANNOT, short=True)

    def need(self, what: str, on: str, make):
        """The result of `make`, which questions need; or None, after reporting that it is not available."""
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
            # The system or torch refuses; other questions may still be answered.
            line = {"answer": CANNOT, "why": f"{type(error).__name__}: {error}"}
        except Exception as error:
            # A defect of the program: it fails the trial, but no other answer is lost.
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
    # Exits without teardown, whatever is still pinned or running.
    sys.stderr.flush()
    os._exit(0)
