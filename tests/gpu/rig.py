"""What a measurement is given, and where its results go: `measure_*.py RIG OUT`, both files of JSON.

The rig says how to start either allocator, whether CUDA is simulated, how much time there is and where
compiled programs are. Results are written after each round.
"""

import json
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import ways

# The next round starts only where one as long as the longest so far, and a bit, still fits.
ROOM = 1.15


@dataclass
class Rig:
    ways: dict[str, ways.Way]
    simulated: bool
    quick: bool
    seconds: float
    programs: Path
    out: Path

    def __post_init__(self):
        self.start = time.monotonic()

    def rounds(self, most: int):
        """Numbers of rounds: one at least, `most` at most, and none that would not end in time."""
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


def describe(rig: Rig) -> dict:
    """As `main` reads it back; each stage has its own seconds and files."""
    return {
        "ways": ways.as_json(rig.ways),
        "simulated": rig.simulated,
        "quick": rig.quick,
        "seconds": rig.seconds,
        "programs": str(rig.programs),
    }


def main(measure) -> None:
    """The command line of a measurement."""
    described, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    # Asked to stop, it leaves by its `finally` clauses.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))
    measure(
        Rig(
            ways=ways.from_json(described["ways"]),
            simulated=described["simulated"],
            quick=described["quick"],
            seconds=described["seconds"],
            programs=Path(described["programs"]),
            out=out,
        )
    )
