"""The inputs and results of a measurement: `measure_*.py FIXTURE OUT`, both JSON files.

The fixture says how to start each allocator, whether CUDA is simulated, how much time there is, and where the
compiled programs are. Results are written after each round.
"""

import json
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import ways

# The next round starts only if the longest round so far, times this, still fits.
ROOM = 1.15


@dataclass
class Fixture:
    ways: dict[str, ways.Way]
    simulated: bool
    quick: bool
    seconds: float
    programs: Path
    out: Path

    def __post_init__(self):
        self.start = time.monotonic()

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


def describe(fixture: Fixture) -> dict:
    """The fixture as JSON, for `main`."""
    return {
        "ways": ways.as_json(fixture.ways),
        "simulated": fixture.simulated,
        "quick": fixture.quick,
        "seconds": fixture.seconds,
        "programs": str(fixture.programs),
    }


def main(measure) -> None:
    """The command line of a measurement."""
    described, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    # On SIGTERM, exit through the `finally` clauses.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))
    measure(
        Fixture(
            ways=ways.from_json(described["ways"]),
            simulated=described["simulated"],
            quick=described["quick"],
            seconds=described["seconds"],
            programs=Path(described["programs"]),
            out=out,
        )
    )
