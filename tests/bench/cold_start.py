"""The part `warm-up`: a cold start by backing and page size, and the cost of a warm-up to a program beside it.

warm-up  4 GiB in blocks of 1 GiB, with two threads: `cuda` (the simulator's mmap and mlock of 4 KiB
         pages), and memory of our own, which forked children share, in transparent huge pages and,
         where the system can set 4 GiB aside, in huge pages of its pool
beside   allocate and free of a cached block on the main thread: while a warm-up goes on in the
         background, over the time when none does

Pages are locked for real. Each process first uses as much memory as it will need, just before the clock
starts (`harness.use_memory`).
"""

from pathlib import Path
from statistics import fmean, median

from harness import Machine
from results import Results, at_least, at_most, table
from scripts import in_python_tests, measure

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
import pinbuddy
import measure  # which knows where the benchmark is
from harness import use_memory
MAP_HUGETLB = 0x40000
torch.cuda.init()
use_memory({used})
taken = seconds(lambda: pinbuddy.warm_up(wait=True))
pages = [it["page_bytes"] for it in pinbuddy.stats()["segments"]]
answer([taken, pages])
"""

THP, POOLED = "pages, transparent", "pages, 2 MiB"
WAYS = {
    "cuda": {"BUDDY_BACKING": "cuda"},
    THP: {"BUDDY_BACKING": "pages", "BUDDY_HUGE_PAGES": "thp"},
    POOLED: {"BUDDY_BACKING": "pages", "BUDDY_HUGE_PAGES": "2M"},
}


def set_aside(pages: int) -> bool:
    try:
        POOL.write_text(str(pages))
        return int(POOL.read_text()) >= pages
    except OSError:
        return False


def cold(fork: str) -> dict:
    """For each way its seconds, and the pages that it got; the ways take turns."""
    before = POOL.read_text() if POOL.exists() else "0"
    seen: dict[str, list] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, settings in WAYS.items():
            try:
                if way != POOLED or set_aside(2048):
                    program = WARM_UP.format(used="4 << 30, MAP_HUGETLB" if way == POOLED else "5 << 30")
                    seen[way].append(measure.run(fork, program, **BLOCKS, **settings))
            finally:
                if way == POOLED:
                    POOL.write_text(before)
    return seen


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


def warm_up(machine: Machine, results: Results) -> None:
    with in_python_tests(machine) as (_, fork):
        seen = cold(fork)
        beside = [measure.run(fork, BESIDE, **BEHIND, **WAYS[THP]) for _ in range(ROUNDS)]
    # Compares neighbours in time, which share the machine's noise.
    faster = {way: [cuda / own for (cuda, _), (own, _) in zip(seen["cuda"], of)] for way, of in seen.items()}
    for name, way, target in [("thp", THP, 3.0), ("hugetlb", POOLED, median(faster[THP]))]:
        if faster[way]:
            results.rounds(("warmup_speedup", name), faster[way], at_least(target))
        else:
            results.skipped[f"warmup_speedup {name}"] = "no such pages here"
    results.rounds(("beside_warm_up",), [fmean(with_it) / fmean(alone) for with_it, alone in beside], at_most(1.1))
    seconds = {way: median(it[0] for it in of) for way, of in seen.items() if of}
    results.details["warm_up"] = {"seconds": seconds}
    pages = {way: ", ".join(sorted({str(page) for it in of for page in it[1]})) for way, of in seen.items()}
    print(table("warm-up of 4 GiB", ["seconds", "times faster", "pages"],
                [(way, [it, median(faster[way]), pages[way]]) for way, it in seconds.items()]))
