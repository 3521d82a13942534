"""Bandwidth of copies to and from blocks of the engine, by page size, relative to cudaHostAlloc's.

One process for each kind of pinned memory: stock's cudaHostAlloc; the engine's by default, in pages of 4 KiB, and
registered in chunks of 64 MiB, so that each copy of 256 MiB crosses registrations.
"""

import fixture
from crew import Crew, Worker, in_order
from ratios import ratio, spread

DIRECTIONS = ("h2d", "d2h")
DEFAULT = "engine"
OURS = {
    DEFAULT: {},
    "engine, 4 KiB": {"BUDDY_HUGE_PAGES": "off"},
    "engine, chunks": {"BUDDY_REGISTER_CHUNK_MB": 64},
}


def measure(it: fixture.Fixture) -> None:
    mib, copies = ([8, 32], 2) if it.simulated else ([16, 64, 256], 8)
    blocks = {"BUDDY_BLOCK_SIZE_MB": 128 if it.simulated else 1024, "BUDDY_BLOCK_COUNT": 1, "BUDDY_WARMUP": "sync"}
    workers = {"stock": Worker(it.ways["stock"], "work_bandwidth")}
    for name, settings in OURS.items():
        workers[name] = Worker(it.ways["ours"], "work_bandwidth", **blocks | settings)
    sizes = {f"{it} MiB": it << 20 for it in mib}
    with Crew(workers):
        for name in OURS:
            if not all(workers[name].ask("is_engines", size=size) for size in sizes.values()):
                raise RuntimeError(f"{name}: the blocks are not the engine's")
        seen: dict = {
            direction: {size: {name: [] for name in workers} for size in sizes} for direction in DIRECTIONS
        }
        for number in it.rounds(15):
            for direction in DIRECTIONS:
                for size, length in sizes.items():
                    for name in in_order(workers, number):
                        speed = workers[name].ask("gb_per_s", direction=direction, size=length, copies=copies)
                        seen[direction][size][name].append(speed)
            it.write(results(seen))


def results(seen: dict) -> dict:
    def each(what):
        return {
            direction: {size: what(own) for size, own in by_size.items()} for direction, by_size in seen.items()
        }

    return {
        "gb_per_s": each(lambda own: {name: spread(values) for name, values in own.items()}),
        "ratio": each(lambda own: {name: ratio(own[name], own["stock"]) for name in OURS}),
        "largest": list(seen["h2d"])[-1],
    }


if __name__ == "__main__":
    fixture.main(measure)
