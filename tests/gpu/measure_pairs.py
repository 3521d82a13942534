"""Hit pairs: allocate + free of a cached block, by the C++ harness of tests/bench, in nanoseconds.

Two processes on one core take turns of about a millisecond, so that a disturbance affects both or few turns.
Several pairs of processes, since memory layout differs by process.
"""

import os
import statistics
import subprocess

import measuring
from measuring import in_order, ratio, spread
from ways import Way

PATTERNS = {"8 MiB": str(8 << 20), "64 KiB": str(64 << 10), "mixed": "mixed", "8 MiB, used on a stream": "event"}
# The harness's name of each allocator.
SUBJECT = {"stock": "stock", "ours": "fork"}
PAIRS = 10_000


class Harness:
    """A process of the harness, which answers each line with a line of `name=value`."""

    def __init__(self, program, way: Way, core: int, **settings):
        self.process = subprocess.Popen(
            [str(program), SUBJECT[way.name]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=way.for_cpp(**settings),
        )
        os.sched_setaffinity(self.process.pid, {core})

    def ask(self, line: str) -> float:
        """The value of the only answer; nothing is 0."""
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        if answer.startswith("error ") or self.process.poll() is not None:
            raise RuntimeError(f"the harness was told {line!r} and says {answer!r}")
        return float(answer.partition("=")[2] or 0)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(it: measuring.Fixture) -> None:
    turns = 4 if it.simulated else 20
    core = max(os.sched_getaffinity(0))
    # Enough segments for small and large blocks, which are kept apart.
    settings = {"stock": {}, "ours": {"BUDDY_BLOCK_COUNT": 2, "BUDDY_WARMUP": "sync"}}
    if it.simulated:
        # Pins are only counted.
        settings["stock"] = {"PINBUDDY_SIM_LOCK": 0}
        settings["ours"] |= {"PINBUDDY_SIM_LOCK": 0, "BUDDY_BACKING": "cuda", "BUDDY_MAX_MB": 4096}
    seen: dict[str, dict[str, list[float]]] = {name: {way: [] for way in settings} for name in PATTERNS}
    for number in it.rounds(5):
        harnesses = {
            name: Harness(it.programs / "harness", it.ways[name], core, **own) for name, own in settings.items()
        }
        try:
            for pattern, requests in PATTERNS.items():
                for harness in harnesses.values():
                    harness.ask(f"requests {requests}")
                    harness.ask(f"pairs {PAIRS}")
                times: dict[str, list[float]] = {name: [] for name in harnesses}
                for turn in range(turns):
                    for name in in_order(harnesses, number + turn):
                        times[name].append(harnesses[name].ask(f"pairs {PAIRS}"))
                for name, own in times.items():
                    seen[pattern][name].append(statistics.median(own))
        finally:
            for harness in harnesses.values():
                harness.close()
        it.write(results(seen))


def results(seen: dict) -> dict:
    return {
        "ns": {pattern: {way: spread(own) for way, own in by.items()} for pattern, by in seen.items()},
        "ratio": {pattern: ratio(by["ours"], by["stock"]) for pattern, by in seen.items()},
    }


if __name__ == "__main__":
    measuring.main(measure)
