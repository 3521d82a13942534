"""Do calls of this process and of another one wait while a region is registered or unregistered, and how long?

A thread registers and unregisters the same region repeatedly; each call counts to the operation that it overlapped.
The same calls are timed before that, undisturbed.
"""

import json
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import asking
import libcuda
import memory
import probing
from asking import Asking, Figure, Said
from memory import GIB, MIB

REGISTERING, UNREGISTERING = "registered", "unregistered"
# A stall is longer than the worst quiet call by this factor, and than this time.
TIMES, LEAST = 2.0, 0.001


class Neighbour:
    def __init__(self):
        program = Path(__file__).with_name("neighbour.py")
        self.process = subprocess.Popen(
            [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def begin(self, seconds: float) -> None:
        print(seconds, file=self.process.stdin, flush=True)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise libcuda.Unavailable(f"the other process ended with status {self.process.wait()}")
        return line

    def samples(self) -> dict:
        return json.loads(self.answer())


class Registering(threading.Thread):
    """Notes when each call began and ended."""

    def __init__(self, runtime: libcuda.Runtime, region: memory.Region):
        super().__init__(daemon=True)
        self._runtime, self._region = runtime, region
        self.spans: dict[str, list[tuple[float, float]]] = {REGISTERING: [], UNREGISTERING: []}
        self.wrong: Exception | None = None
        self.over = threading.Event()

    def run(self) -> None:
        runtime, region = self._runtime, self._region
        try:
            while not self.over.is_set():
                start = time.monotonic()
                runtime.register(region.address, region.size)
                middle = time.monotonic()
                runtime.unregister(region.address)
                self.spans[REGISTERING].append((start, middle))
                self.spans[UNREGISTERING].append((middle, time.monotonic()))
        except Exception as error:
            self.wrong = error


def sort_out(samples: list, spans: dict[str, list[tuple[float, float]]]) -> dict[str, list[float]]:
    """Durations of the calls by the span that each overlapped longest; calls without overlap are left out. Spans
    and samples are both consecutive."""
    every = sorted((start, end, what) for what, when in spans.items() for start, end in when)
    found: dict[str, list[float]] = {what: [] for what in spans}
    first = 0
    for start, seconds in samples:
        while first < len(every) and every[first][1] < start:
            first += 1
        beside: dict[str, float] = {}
        at = first
        while at < len(every) and every[at][0] < start + seconds:
            low, high, what = every[at]
            beside[what] = beside.get(what, 0.0) + min(high, start + seconds) - max(low, start)
            at += 1
        if beside:
            found[max(beside, key=beside.get)].append(seconds)
    return found


def during(runtime: libcuda.Runtime, region: memory.Region | None, seconds: float, own, neighbour: Neighbour):
    """Samples of both processes, and the registering thread's spans."""
    thread = Registering(runtime, region) if region else None
    if thread:
        thread.start()
    neighbour.begin(seconds)
    samples = {"this process": own.run(seconds)}
    samples["another process"] = neighbour.samples()
    if thread:
        thread.over.set()
        thread.join()
        if thread.wrong:
            raise thread.wrong
    return samples, thread.spans if thread else {}


def waits(quiet: list[float], busy: list[float]) -> Said:
    if not busy:
        raise libcuda.Unavailable("no call went on beside it")
    worst, before = max(busy), max(quiet)
    longer = sum(seconds > max(LEAST, TIMES * before) for seconds in busy)
    told = f"worst {worst * 1e3:.2f} ms, median {statistics.median(busy) * 1e3:.3f} ms of {len(busy)}"
    told += f"; in quiet {before * 1e3:.2f} and {statistics.median(quiet) * 1e3:.3f} of {len(quiet)}"
    figures = {"beside it": Figure("s", busy), "in quiet": Figure("s", quiet)}
    # A single one may be noise.
    return Said(longer > 1, f"{longer} long; {told}", figures)


def tell(it: Asking, quiet: dict, samples: dict, spans: dict, on: str) -> None:
    """For each call of each process: whether it waits, and its times."""
    for process, calls in samples.items():
        for call, taken in calls.items():
            before = [seconds for _, seconds in quiet[process][call]]
            for what, busy in sort_out(taken, spans).items():
                it.tell(f"does {call} of {process} wait while a region is {what}?", on, lambda: waits(before, busy))


def ask(it: Asking) -> None:
    neighbour, runtime = Neighbour(), libcuda.runtime()
    own = probing.Probe(runtime)
    each = min(2.5, 0.1 * it.seconds)
    large, small = (32 * MIB, 8 * MIB) if it.simulated else (GIB, 64 * MIB)

    def in_quiet() -> dict:
        neighbour.answer()
        return during(runtime, None, each, own, neighbour)[0]

    quiet = it.need("calls with nothing beside them", "this process and another one", in_quiet)
    if not quiet:
        return
    best = memory.best_kind()
    for kind, size in ((best, large), (best, small), (memory.SMALL_PAGES, large)):

        def busy() -> tuple[dict, dict]:
            with memory.Region(kind, size) as region:
                return during(runtime, region, each, own, neighbour)

        on = f"{size >> 20} MiB of {kind}"
        found = it.need("calls beside registering", on, busy)
        if found:
            tell(it, quiet, *found, on)


if __name__ == "__main__":
    asking.main(ask)
