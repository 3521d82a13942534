"""The cost of pinning, in seconds per GiB: cudaHostAlloc, and mapped memory by page size and threads.

One process for each, which stay alive and take turns: `pinbuddy.warm_up(wait=True)` is timed, and the memory
released before the next turn, so that each reuses memory that another has just used. The first turn of each is not
counted. Pool pages are reserved for the stage if the system permits.
"""

import contextlib
import os
import time
from pathlib import Path

import measuring
from measuring import Worker, in_order, ratio, spread, together

CUDA = "cudaHostAlloc"
PAGES = {"4 KiB": "off", "THP": "thp", "hugetlb": "2M"}
BLOCKS = 2
POOL = Path("/proc/sys/vm/nr_hugepages")
PAGE_MIB = 2


def turn() -> dict:
    """Seconds per GiB to pin the blocks, and their pages."""
    import pinbuddy

    start = time.perf_counter()
    pinbuddy.warm_up(wait=True)
    taken = time.perf_counter() - start
    stats = pinbuddy.stats()
    segments = stats["segments"]
    pinned = sum(it["bytes"] for it in segments)
    pinbuddy.empty_cache()
    if pinned < wanted():
        raise RuntimeError(f"{pinned >> 20} MiB were pinned: {stats['warm_up']} {stats['budget']}")
    return {
        "s_per_gib": taken / (pinned / (1 << 30)),
        "pages": sorted({str(it["page_bytes"]) for it in segments}),
        "huge": sum(it["huge_bytes"] or 0 for it in segments) / pinned,
    }


def wanted() -> int:
    """Bytes that the settings have pinned ahead."""
    import pinbuddy

    config = pinbuddy.config()
    size, count = (config[f"BUDDY_BLOCK_{it}"]["value"] for it in ("SIZE_MB", "COUNT"))
    return (int(size) << 20) * int(count)


@contextlib.contextmanager
def set_aside(mib: int):
    """Reserves pages, which only root may do, and yields whether there are enough. Restores the pool afterwards."""
    try:
        before = POOL.read_text()
        POOL.write_text(str(int(before) + mib // PAGE_MIB))
    except OSError:
        yield False
        return
    try:
        yield int(POOL.read_text()) >= int(before) + mib // PAGE_MIB
    finally:
        POOL.write_text(before)


def by_way(it: measuring.Fixture, pool: bool) -> dict[str, dict]:
    """Settings by name; a name ends with the threads."""
    threads = [n for n in (1, 2, 4, 8, 16) if n <= len(os.sched_getaffinity(0))]
    if it.simulated:
        threads = threads[:2]
    if it.quick:
        threads = threads[1:] or threads
    common = {
        "BUDDY_BLOCK_SIZE_MB": 16 if it.simulated else 1024,
        "BUDDY_BLOCK_COUNT": BLOCKS,
        "BUDDY_MAX_MB": 8192,
        "BUDDY_WARMUP": "off",
    }
    ways = {CUDA: common | {"BUDDY_BACKING": "cuda"}}
    for pages, setting in PAGES.items():
        if pages != "hugetlb" or pool:
            for count in threads:
                mine = {"BUDDY_BACKING": "pages", "BUDDY_HUGE_PAGES": setting, "BUDDY_PIN_THREADS": count}
                ways[f"{pages}, {count}"] = common | mine
    return ways


def measure(it: measuring.Fixture) -> None:
    with set_aside(64 if it.simulated else 2200) as pool:
        workers = {
            name: Worker(it.ways["ours"], "measure_pins", **settings)
            for name, settings in by_way(it, pool).items()
        }
        with together(workers):
            for worker in workers.values():
                worker.ask("turn")
            seen: dict[str, list] = {name: [] for name in workers}
            for number in it.rounds(5):
                for name in in_order(workers, number):
                    seen[name].append(workers[name].ask("turn"))
                it.write(results(seen, pool))


def results(seen: dict[str, list], pool: bool) -> dict:
    cost = {name: [turn["s_per_gib"] for turn in turns] for name, turns in seen.items()}
    return {
        "pool": pool,
        "s_per_gib": {name: spread(values) for name, values in cost.items()},
        "times_faster": {name: ratio(cost[CUDA], own) for name, own in cost.items() if name != CUDA},
        "pages": {name: sorted({page for turn in turns for page in turn["pages"]}) for name, turns in seen.items()},
        "huge": {name: min(turn["huge"] for turn in turns) for name, turns in seen.items()},
    }


if __name__ == "__main__":
    measuring.main(measure)
