"""What measurements share: their inputs, rounds and results; processes that measure in turns; figures of rounds.

A stage is a function of a module, started as `measuring.py FIXTURE MODULE FUNCTION [ARGUMENT]`. Other functions of the module are those
that its workers call (`worker.py MODULE`). Results are written after each round.

A ratio is of medians over the same rounds, and its quartiles are those of the rounds' ratios, since a disturbance mostly affects
everything in a round.
"""

import contextlib
import dataclasses
import importlib
import json
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from ways import Way

# The next round starts only if the longest round so far, times this, still fits.
ROOM = 1.15


@dataclasses.dataclass
class Fixture:
    """How to start each allocator, whether CUDA is simulated, how much time there is, where compiled programs are, where results go."""

    ways: dict[str, Way]
    simulated: bool
    quick: bool
    seconds: float
    programs: Path
    out: Path

    def __post_init__(self):
        self.start = time.monotonic()

    def left(self) -> float:
        return self.start + self.seconds - time.monotonic()

    def rounds(self, most: int):
        """Yields round numbers: at least one, at most `most`, and none that would not end in time."""
        if self.quick or self.simulated:
            most = min(most, 1 if self.quick and self.simulated else 2)
        longest = 0.0
        for number in range(most):
            before = time.monotonic()
            if number and before + ROOM * longest > self.start + self.seconds:
                return
            print(f"round {number + 1} of {most}", flush=True)
            yield number
            longest = max(longest, time.monotonic() - before)

    def write(self, results: dict) -> None:
        scratch = self.out.with_suffix(".part")
        scratch.write_text(json.dumps(results))
        scratch.rename(self.out)

    def as_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), default=str)

    @classmethod
    def of_json(cls, text: str) -> "Fixture":
        fields = json.loads(text)
        paths = {name: Path(fields[name]) for name in ("programs", "out")}
        return cls(**fields | paths | {"ways": {name: Way(**own) for name, own in fields["ways"].items()}})


def main(described: str, module: str, function: str, *arguments: str) -> None:
    # On SIGTERM, exit through the `finally` clauses.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))
    getattr(importlib.import_module(module), function)(Fixture.of_json(Path(described).read_text()), *arguments)


class Worker:
    """A process with one allocator and these settings (`worker.py`). Starts at once; `ready` waits for it."""

    def __init__(self, way: Way, module: str, **settings):
        worker = Path(__file__).parent / "worker.py"
        self.process = subprocess.Popen(
            [way.python, str(worker), module, way.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=way.environment(**settings),
        )
        self.title = f"{module} with {way.name} {settings}"

    def ready(self) -> None:
        """Waits until torch is imported and CUDA is initialized."""
        self._answer()

    def ask(self, function: str, **arguments):
        """Calls a function of the module. Raises RuntimeError with its error."""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps({"do": function, "with": arguments}), file=self.process.stdin, flush=True)
        return self._answer()

    def last(self, function: str, **arguments):
        """Its last answer: it ends then as programs do, so that a recorded run writes its plan."""
        value = self.ask(function, **arguments)
        self.close(seconds=300)
        if self.process.returncode:
            raise RuntimeError(f"{self.title}: ended with status {self.process.returncode}")
        return value

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.title}: ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.title}:\n{answer['error']}")
        return answer["value"]

    def close(self, seconds: float = 30) -> None:
        """Ends it, and waits until its memory is released. May be called again."""
        self.process.stdin.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def together(workers: dict):
    """Workers by name, which start side by side and end together."""
    try:
        for worker in workers.values():
            worker.ready()
        yield workers
    finally:
        for worker in workers.values():
            worker.close()


def in_rounds(it: Fixture, most: int, names, ask, results) -> None:
    """Asks for each name's value once a round, and writes what the function `results` makes of all values by name."""
    seen: dict[str, list] = {name: [] for name in names}
    for number in it.rounds(most):
        for name in in_order(names, number):
            seen[name].append(ask(name))
        it.write(results(seen))


def in_order(names, turn: int) -> list:
    """Each turn begins with another one, so that nobody is always first, or always after the same one."""
    names = list(names)
    first = turn % len(names)
    return names[first:] + names[:first]


def quartiles(values: list[float]) -> list[float]:
    """The first and the third; of one value, the value."""
    if len(values) < 2:
        return [values[0], values[0]]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return [low, high]


def spread(values: list[float]) -> dict:
    """The statistics of at least one round."""
    return {"median": statistics.median(values), "quartiles": quartiles(values), "rounds": values}


def ratio(of: list[float], over: list[float]) -> dict:
    """`of` over `over`, by round; both have the same number of rounds, at least one, and `over` no zero."""
    if len(of) != len(over):
        raise ValueError(f"{len(of)} rounds over {len(over)}")
    each = [one / other for one, other in zip(of, over)]
    return {"ratio": statistics.median(of) / statistics.median(over), "quartiles": quartiles(each), "rounds": each}


if __name__ == "__main__":
    main(*sys.argv[1:])
