"""The cost of pinning, in seconds per GiB: cudaHostAlloc, and mapped memory by page size and threads.

One process for each, which stay alive and take turns: `pinbuddy.warm_up(wait=True)` is timed, and the memory
released before the next turn, so that each reuses memory that another has just used. The first turn of each is not
counted. Pool pages are reserved for the stage if the system permits.
"""

import os

import fixture
from crew import Crew, Worker, in_order
from huge_pages import set_aside
from ratios import ratio, spread

CUDA = "cudaHostAlloc"
PAGES = {"4 KiB": "off", "THP": "thp", "hugetlb": "2M"}
BLOCKS = 2


def by_way(it: fixture.Fixture, pool: bool) -> dict[str, dict]:
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


def measure(it: fixture.Fixture) -> None:
    with set_aside(64 if it.simulated else 2200) as pool:
        workers = {
            name: Worker(it.ways["ours"], "work_pins", **settings)
            for name, settings in by_way(it, pool).items()
        }
        with Crew(workers):
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
    fixture.main(measure)
