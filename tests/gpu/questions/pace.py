"""cudaHostRegister in seconds per GiB: by page and by piece size, from one thread and from four at once."""

import threading
import time

import asking
import libcuda
import memory
from asking import Asking, Figure, Said
from memory import GIB, MIB

SIZES = (64 * MIB, 256 * MIB, GIB, 4 * GIB, 8 * GIB)
ROUNDS, THREADS = 3, 4
# Four threads' time over one thread's, with a driver that serializes them and with one that does not.
TURNS, ABREAST = 0.8, 0.5


def alone(runtime: libcuda.Runtime, region: memory.Region, unregister: list[float]) -> Figure:
    scale, seconds = GIB / region.size, []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        runtime.register(region.address, region.size)
        registered = time.perf_counter()
        runtime.unregister(region.address)
        seconds.append((registered - start) * scale)
        unregister.append((time.perf_counter() - registered) * scale)
    return Figure("s/GiB", seconds)


class Alone:
    """One piece at a time; each region exists only during its measurement."""

    def __init__(self, it: Asking, runtime: libcuda.Runtime):
        self._it, self._runtime = it, runtime
        # Seconds of the last measurement of each kind; most of it is preparing the memory.
        self.seconds_per_gib: dict[str, float] = {}

    def ask(self, kind: str, size: int) -> None:
        took: list[float] = []

        def attempt() -> Figure:
            if self._it.left() < 1.5 * self.seconds_per_gib.get(kind, 0) * size / GIB:
                raise libcuda.Unavailable("no time was left for it")
            with memory.Region(kind, size) as region:
                if kind in memory.HUGE_KINDS and region.huge() < 0.9:
                    raise libcuda.Unavailable(f"only {region.huge():.0%} of it came in huge pages")
                return alone(self._runtime, region, took)

        start, on = time.monotonic(), f"{size >> 20} MiB of {kind}"
        if self._it.ask("registering a piece, alone", on, attempt):
            self._it.tell("unregistering it", on, lambda: Figure("s/GiB", took))
            self.seconds_per_gib[kind] = (time.monotonic() - start) * GIB / size


def together(runtime: libcuda.Runtime, regions: list[memory.Region]) -> float:
    """Seconds until each thread has registered its own region."""
    begin = threading.Barrier(len(regions) + 1)
    wrong: list[Exception] = []

    def register(region: memory.Region) -> None:
        begin.wait()
        try:
            runtime.register(region.address, region.size)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=register, args=(region,)) for region in regions]
    for thread in threads:
        thread.start()
    start = time.perf_counter()
    begin.wait()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    if wrong:
        raise wrong[0]
    return seconds


def in_turn(runtime: libcuda.Runtime, regions: list[memory.Region]) -> float:
    start = time.perf_counter()
    for region in regions:
        runtime.register(region.address, region.size)
    return time.perf_counter() - start


def from_threads(it: Asking, runtime: libcuda.Runtime, kind: str, size: int) -> None:
    ways = {in_turn: [], together: []}
    on = f"{THREADS} pieces of {size >> 20} MiB of {kind}"

    def measure() -> Figure:
        regions: list[memory.Region] = []
        try:
            for _ in range(THREADS):
                regions.append(memory.Region(kind, size))
            for _ in range(ROUNDS):
                for way, seconds in ways.items():
                    seconds.append(way(runtime, regions))
                    for region in regions:
                        runtime.unregister(region.address)
        finally:
            for region in regions:
                region.close()
        return Figure("s/GiB", [it * GIB / (THREADS * size) for it in ways[together]])

    if it.ask(f"registering from {THREADS} threads at once", on, measure):
        ratios = [one / other for one, other in zip(ways[together], ways[in_turn])]
        it.tell("at once, over one behind the other", on, lambda: Figure("times as long", ratios))
        it.tell("does the driver register one at a time?", on, lambda: one_at_a_time(sorted(ratios)[len(ratios) // 2]))


def one_at_a_time(ratio: float) -> Said:
    told = f"at once takes {ratio:.2f} times as long as one behind the other"
    if ABREAST < ratio < TURNS:
        return Said(False, f"in part: {told}")
    return Said(ratio >= TURNS, told)


def ask(it: Asking) -> None:
    runtime = libcuda.runtime()
    sizes = (16 * MIB, 64 * MIB) if it.simulated else SIZES
    pieces = Alone(it, runtime)
    for size in sizes[:3]:
        for kind in (memory.SHARED_HUGE, memory.PRIVATE_HUGE, memory.SMALL_PAGES):
            pieces.ask(kind, size)
    for kind in memory.KINDS:
        from_threads(it, runtime, kind, sizes[1])
    # Last, since they take longest; with huge pages if there were any.
    had = [kind for kind in memory.HUGE_KINDS if kind in pieces.seconds_per_gib]
    for size in sizes[3:]:
        pieces.ask((had or memory.HUGE_KINDS)[0], size)


if __name__ == "__main__":
    asking.main(ask)
