"""What pinned memory costs: the stages `pins`, `first`, `bandwidth` and `pairs`."""

import contextlib
import os
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from measuring import Fixture, Worker, in_order, in_rounds, ratio, spread, together

NAME = "measure_pinned"


# ---- pins: seconds per GiB, by cudaHostAlloc and of mapped memory by page size and threads. Its processes take turns.
CUDA = "cudaHostAlloc"
PAGES = {"4 KiB": "off", "THP": "thp", "hugetlb": "2M"}
POOL = Path("/proc/sys/vm/nr_hugepages")
PAGE_MIB = 2


def turn() -> dict:
    """Pins the blocks, and releases them, so that the next turn reuses memory that was just used."""
    import pinbuddy

    start = time.perf_counter()
    pinbuddy.warm_up(wait=True)
    taken = time.perf_counter() - start
    stats = pinbuddy.stats()
    segments = stats["segments"]
    pinned = sum(it["bytes"] for it in segments)
    pinbuddy.empty_cache()
    if pinned >> 20 < int(os.environ["BUDDY_BLOCK_SIZE_MB"]) * int(os.environ["BUDDY_BLOCK_COUNT"]):
        raise RuntimeError(f"{pinned >> 20} MiB were pinned: {stats['warm_up']} {stats['budget']}")
    return {
        "s_per_gib": taken / (pinned / (1 << 30)),
        "pages": [str(it["page_bytes"]) for it in segments],
        "huge": sum(it["huge_bytes"] or 0 for it in segments) / pinned,
    }


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


def by_pages(it: Fixture, pool: bool) -> dict[str, dict]:
    """Settings by name; a name ends with the threads."""
    threads = [n for n in (1, 2, 4, 8, 16) if n <= len(os.sched_getaffinity(0))]
    threads = threads[:2] if it.simulated else threads
    threads = threads[1:] or threads if it.quick else threads
    common = {"BUDDY_BLOCK_SIZE_MB": 16 if it.simulated else 1024, "BUDDY_BLOCK_COUNT": 2, "BUDDY_MAX_MB": 8192, "BUDDY_WARMUP": "off"}
    return {CUDA: common | {"BUDDY_BACKING": "cuda"}} | {
        f"{pages}, {count}": common | {"BUDDY_BACKING": "pages", "BUDDY_HUGE_PAGES": setting, "BUDDY_PIN_THREADS": count}
        for pages, setting in PAGES.items() if pages != "hugetlb" or pool for count in threads
    }


def pins(it: Fixture) -> None:
    def results(seen: dict[str, list]) -> dict:
        cost = {name: [own["s_per_gib"] for own in turns] for name, turns in seen.items()}
        return {
            "pool": pool,
            "s_per_gib": {name: spread(values) for name, values in cost.items()},
            "times_faster": {name: ratio(cost[CUDA], own) for name, own in cost.items() if name != CUDA},
            "pages": {name: sorted({page for own in turns for page in own["pages"]}) for name, turns in seen.items()},
            "huge": {name: min(own["huge"] for own in turns) for name, turns in seen.items()},
        }

    with set_aside(64 if it.simulated else 2200) as pool:
        workers = {name: Worker(it.ways["ours"], NAME, **own) for name, own in by_pages(it, pool).items()}
        with together(workers):
            for worker in workers.values():
                # Not counted: nothing was just used.
                worker.ask("turn")
            in_rounds(it, 5, workers, lambda name: workers[name].ask("turn"), results)


# ---- first: the time to the first block, while the warm-up that it starts continues in the background.
def first_block(mib: int) -> float:
    from program import pinned, seconds

    return seconds(lambda: pinned(mib))


def first(it: Fixture) -> None:
    # Few enough blocks for any machine: the warm-up only has to continue behind the first one.
    settings = {"ours": {"BUDDY_BLOCK_COUNT": 1} if it.simulated else {}, "stock": {}}
    seen: dict[str, list[float]] = {name: [] for name in settings}
    pairs = range(1 if it.simulated else 3)
    for _ in it.rounds(5):
        # They start together, since that takes longest, and each ends before the next one's turn.
        workers = {(pair, name): Worker(it.ways[name], NAME, **own) for pair in pairs for name, own in settings.items()}
        with together(workers):
            for pair in pairs:
                for name in in_order(settings, len(seen["stock"])):
                    seen[name].append(workers[pair, name].ask("first_block", mib=64))
                    workers[pair, name].close()
        it.write({"seconds": {name: spread(own) for name, own in seen.items()}, "ratio": ratio(seen["ours"], seen["stock"])})


# ---- bandwidth: of copies to and from stock's memory and the engine's in two kinds of pages.
DIRECTIONS = ("h2d", "d2h")
OURS = {"engine": {}, "engine, 4 KiB": {"BUDDY_BACKING": "pages", "BUDDY_HUGE_PAGES": "off"}}
_blocks: dict[int, tuple] = {}


def make_blocks(mib: list[int], engines: bool) -> None:
    """On the host and on the device, for all copies."""
    from program import block, of_engine, pinned

    _blocks.update({size: (pinned(size).fill_(1), block(size)) for size in mib})
    if engines and not all(of_engine(host) for host, _ in _blocks.values()):
        raise RuntimeError("the blocks are not the engine's")


def gb_per_s(direction: str, mib: int, copies: int) -> float:
    """So many consecutive copies on a stream."""
    import torch
    from program import seconds

    host, device = _blocks[mib]
    to, source = (device, host) if direction == "h2d" else (host, device)

    def copy(times: int) -> None:
        for _ in range(times):
            to.copy_(source, non_blocking=True)
        torch.cuda.synchronize()

    copy(1)
    return copies * (mib << 20) / seconds(lambda: copy(copies)) / 1e9


def bandwidth(it: Fixture) -> None:
    sizes, copies = ([8, 32], 2) if it.simulated else ([16, 64, 256], 8)
    blocks = {"BUDDY_BLOCK_SIZE_MB": 128 if it.simulated else 1024, "BUDDY_BLOCK_COUNT": 1, "BUDDY_WARMUP": "sync"}
    workers = {"stock": Worker(it.ways["stock"], NAME)}
    workers |= {name: Worker(it.ways["ours"], NAME, **blocks | own) for name, own in OURS.items()}
    seen = {direction: {mib: {name: [] for name in workers} for mib in sizes} for direction in DIRECTIONS}

    def each(what) -> dict:
        return {direction: {f"{mib} MiB": what(own) for mib, own in by.items()} for direction, by in seen.items()}

    with together(workers):
        for name, worker in workers.items():
            worker.ask("make_blocks", mib=sizes, engines=name in OURS)
        for number in it.rounds(15):
            for direction in DIRECTIONS:
                for mib in sizes:
                    for name in in_order(workers, number):
                        speed = workers[name].ask("gb_per_s", direction=direction, mib=mib, copies=copies)
                        seen[direction][mib][name].append(speed)
            it.write({
                "gb_per_s": each(lambda own: {name: spread(values) for name, values in own.items()}),
                "ratio": each(lambda own: {name: ratio(own[name], own["stock"]) for name in OURS}),
                "largest": f"{sizes[-1]} MiB",
            })


# ---- pairs: allocate + free of a cached block, in nanoseconds, by the harness of the benchmark.
PATTERNS = {"8 MiB": str(8 << 20), "64 KiB": str(64 << 10), "mixed": "mixed", "8 MiB, used on a stream": "event"}
PAIRS = 10_000


def pairs(it: Fixture) -> None:
    sys.path.append(str(Path(__file__).parent.parent / "bench"))
    from harness import Case, Process, measure, requests

    # Enough segments for small and large blocks, which are kept apart.
    settings = {"stock": {}, "ours": {"BUDDY_BLOCK_COUNT": 2, "BUDDY_WARMUP": "sync"}}
    if it.simulated:
        # Pins are only counted.
        settings["stock"] = {"PINBUDDY_SIM_LOCK": 0}
        settings["ours"] |= {"PINBUDDY_SIM_LOCK": 0, "BUDDY_BACKING": "cuda", "BUDDY_MAX_MB": 4096}

    def start() -> list[Process]:
        return [Process(name, [str(it.programs / "harness")], it.ways[name].for_cpp(**own)) for name, own in settings.items()]

    cases = [Case(name, f"pairs {PAIRS}", requests(words, PAIRS)) for name, words in PATTERNS.items()]
    seen: dict[str, dict[str, list[float]]] = {name: {way: [] for way in settings} for name in PATTERNS}
    for _ in it.rounds(5):
        for pattern, by in measure(SimpleNamespace(say=print), start, cases, rounds=1, turns=4 if it.simulated else 20).items():
            for name, (turns,) in by.items():
                seen[pattern][name].append(statistics.median(turns))
        it.write({
            "ns": {pattern: {way: spread(own) for way, own in by.items()} for pattern, by in seen.items()},
            "ratio": {pattern: ratio(by["ours"], by["stock"]) for pattern, by in seen.items()},
        })
