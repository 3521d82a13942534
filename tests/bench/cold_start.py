"""The cost of a cold start by backing and page size, and the cost of a warm-up to a program beside it.

The part `warm-up` of `cargo xtask bench`.

warm-up  4 GiB in blocks of 1 GiB, with two threads: `cuda` (the simulator's mmap and mlock of 4 KiB
         pages), and memory of our own, which forked children share, in pages of 4 KiB, transparent
         huge pages and, where the system can set 4 GiB aside, huge pages of its pool; and in
         transparent ones that are hidden from children
beside   allocate and free of a cached block on the main thread: while a warm-up goes on in the
         background, over the time when none does

Pages are locked for real. A virtual machine may have to ask its host for memory that was not in use
lately, which takes longer than all else; so each process first uses as much memory as it will need
and gives it back to the kernel, just before the clock starts.
"""

import statistics
from pathlib import Path

from production import run

ROUNDS = 5
POOL = Path("/proc/sys/vm/nr_hugepages")
BLOCKS = {
    "BUDDY_BLOCK_SIZE_MB": "1024",
    "BUDDY_BLOCK_COUNT": "4",
    "BUDDY_MAX_MB": "6000",
    "BUDDY_PIN_THREADS": "2",
    "PINBUDDY_SIM_QUIET": "1",
}

WARM_UP = """
import mmap
import pinbuddy
MAP_HUGETLB = 0x40000
def use_memory(size, flags):
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flags)
    if not flags:
        memory.madvise(mmap.MADV_HUGEPAGE)
    for at in range(0, size, 4096):
        memory[at] = 1
    memory.close()
torch.cuda.init()
use_memory({used})
taken = seconds(lambda: pinbuddy.warm_up(wait=True))
pages = [it["page_bytes"] for it in pinbuddy.stats()["segments"]]
answer([taken, pages])
"""

WAYS = {
    "cuda": {"BUDDY_BACKING": "cuda"},
    "pages, 4 KiB": {"BUDDY_BACKING": "pages", "BUDDY_HUGE_PAGES": "off"},
    "pages, transparent": {"BUDDY_BACKING": "pages", "BUDDY_HUGE_PAGES": "thp"},
    "pages, transparent, hidden": {"BUDDY_BACKING": "pages", "BUDDY_HUGE_PAGES": "thp", "BUDDY_FORK": "hide"},
    "pages, 2 MiB": {"BUDDY_BACKING": "pages", "BUDDY_HUGE_PAGES": "2M"},
}


def set_aside(pages: int) -> bool:
    try:
        POOL.write_text(str(pages))
        return int(POOL.read_text()) >= pages
    except OSError:
        return False


def warm_up(fork: str) -> dict:
    """Seconds, by way; the ways take turns."""
    before = POOL.read_text() if POOL.exists() else "0"
    seen: dict[str, list] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, settings in WAYS.items():
            pool = way == "pages, 2 MiB"
            if pool and not set_aside(2048):
                POOL.write_text(before)
                continue
            try:
                program = WARM_UP.format(used="4 << 30, MAP_HUGETLB" if pool else "5 << 30, 0")
                seen[way].append(run(fork, program, **BLOCKS, **settings))
            finally:
                if pool:
                    POOL.write_text(before)
    result = {}
    for way, of in seen.items():
        # Compares neighbours in time, which share the machine's noise.
        faster = [cuda[0] / own[0] for cuda, own in zip(seen["cuda"], of)]
        if of:
            result[way] = {
                "seconds": statistics.median(it[0] for it in of),
                "times_faster": statistics.median(faster),
                "spread": [min(faster), max(faster)],
                "rounds": faster,
                "pages": sorted({page for it in of for page in it[1]}, key=str),
            }
    return result


BESIDE = """
import pinbuddy
torch.cuda.init()
kept = pinned(8)
def batch():
    start = time.perf_counter()
    for _ in range(200):
        torch.empty(8 << 20, dtype=torch.uint8, pin_memory=True)
    return (time.perf_counter() - start) / 200 * 1e9
def going():
    return pinbuddy.stats()["warm_up"]["phase"] == "running"
until(lambda: not going())
beside, alone = [], []
for _ in range(2):
    pinbuddy.empty_cache()
    pinbuddy.warm_up()
    while going():
        beside += [batch() for _ in range(10)]
    # Equally long, so that the machine's noise affects both.
    while len(alone) < len(beside):
        going()
        alone += [batch() for _ in range(10)]
answer([beside, alone])
"""
BEHIND = {"BUDDY_BLOCK_SIZE_MB": "512", "BUDDY_BLOCK_COUNT": "8", "BUDDY_MAX_MB": "8000", "PINBUDDY_SIM_QUIET": "1"}


def beside(fork: str) -> dict:
    """Nanoseconds for allocate and free, beside a warm-up and alone, and their ratio."""
    seen: dict[str, list] = {way: [] for way in ("cuda", "pages, transparent")}
    for _ in range(5):
        for way in seen:
            seen[way].append(run(fork, BESIDE, **BEHIND, **WAYS[way]))
    result = {}
    for way, of in seen.items():
        ratios = [statistics.fmean(with_it) / statistics.fmean(alone) for with_it, alone in of]
        result[way] = {
            "beside_ns": statistics.median(statistics.fmean(it[0]) for it in of),
            "alone_ns": statistics.median(statistics.fmean(it[1]) for it in of),
            "ratio": statistics.median(ratios),
            "rounds": ratios,
            "spread": [min(ratios), max(ratios)],
            "batches": sum(len(it[0]) for it in of),
        }
    return result

