"""A forked child has no engine: it neither hangs nor touches the parent's pins. It reads and writes what its parent pinned, as with stock:
where the two are compared, stock's memory is shared with children as a driver's is (PINBUDDY_SIM_SHARED)."""

import ctypes
import statistics
from pathlib import Path

import pytest
from table import answers

SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "4"}

test_in_a_child = answers({
    "the child's engine is off and the parent's goes on": ("""
kept = [pinned(8).fill_(i) for i in range(4)]
def child():
    assert not pinbuddy.enabled()
    assert pinbuddy.stats()["state"] == "forked"
    assert not pinbuddy.warm_up(wait=True)
    assert "fork" in pinbuddy.memory_summary()
    # What it has inherited can be read and written, and let go of.
    # (In a few bytes: torch's own threads are the parent's, too.)
    assert bool((kept[3][:100] == 3).all())
    kept[2][:100].fill_(99)
    kept.clear()
    gc.collect()
pins = sim()
status = forked(child)
written = int(kept[2][0])
kept[2][:100].fill_(2)
whole = all(bool((it == i).all()) for i, it in enumerate(kept))
again = pinned(8)
answer(status, written, whole, of_engine(again), sim()["unpins"] - pins["unpins"], pinbuddy.enabled())
""", [0, 99, True, True, 0, True], {"BUDDY_WARMUP": "sync"}),
    # Threads of the parent's allocate, free, clear and warm up at the moment of each fork.
    "a child born while every lock is busy": ("""
torch.cuda.init()
source = pinned(8)
busy = True
def allocate():
    while busy:
        tensor, small = pinned(5), pinned(1)
        tensor.to("cuda", non_blocking=True)
        del tensor, small
def clear():
    while busy:
        torch._C._host_emptyCache()
        pinbuddy.warm_up()
busy_ones = threading.Thread(target=together, args=[allocate, allocate, clear])
busy_ones.start()
mine = [pinned(6) for _ in range(12)]
def child():
    mine.clear()
    # PyTorch's own function would wait for the lock, but not in every child.
    torch.accelerator.empty_host_cache = torch._C._host_emptyCache = lambda: os._exit(3)
    assert (pinbuddy.segments(), pinbuddy.warm_up(wait=True), pinbuddy.empty_cache()) == ([], False, None)
    assert "forked child" in pinbuddy.memory_summary() and len(pinbuddy.config()) > 5
statuses = [forked(child) for _ in range(30)]
busy = False
busy_ones.join()
answer(statuses)
""", [[0] * 30]),
    # Its handlers run in the child as well, and must not wait for the parent's threads.
    "a child that ends through exit": ("""
kept = pinned(8)
assert warm_up()["phase"] == "running"
answer(forked(lambda: ctypes.CDLL(None).exit(0)))
""", [0], {"PINBUDDY_SIM_PIN_MS_PER_GB": 8000, "PINBUDDY_SIM_LOCK": 0}),
    # Servers that load everything first and then fork: CUDA works in such a child.
    "a child of a parent that used nothing has an engine of its own": ("""
# Reading statistics does not use CUDA.
pinbuddy.stats(), pinbuddy.memory_summary(), torch.cuda.host_memory_stats()
def child():
    kept = pinned(8).fill_(5)
    pinbuddy.warm_up(wait=True)
    assert of_engine(kept) and pinbuddy.enabled() and len(segments()) == 4
    assert bool((kept.to("cuda", non_blocking=True).cpu() == 5).all())
answer(forked(child), sim()["host_allocs"])
""", [0, 0]),
    "data loaders with forked workers": ("""
loader_of = torch.utils.data.DataLoader
# Workers inherit it, read it, and free it at their end.
kept, parent = pinned(8).fill_(1), os.getpid()
def item(i):
    assert not pinbuddy.enabled() or os.getpid() == parent
    assert int(kept[-1]) == 1
    return torch.full((3 << 20,), i, dtype=torch.uint8)
loader = loader_of(Items(12, item), batch_size=2, num_workers=2, pin_memory=True, multiprocessing_context="fork")
seen = []
for batch in [*loader, *loader]:
    assert batch.is_pinned()
    on_device = batch.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    seen += [int(row[0]) for row in on_device.cpu()]
answer(sorted(seen), of_engine(batch), bool((kept == 1).all()))
""", [sorted([*range(12)] * 2), True, True]),
}, **SETTINGS)


SHARES = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "2", "PINBUDDY_SIM_SHARED": 1}
ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
SHARED = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
EACH_WAY = {"default": {}, "sync": {"BUDDY_WARMUP": "sync"}, "cuda": {"BUDDY_BACKING": "cuda"}}

HEAD = """
torch.set_num_threads(1)
torch.cuda.init()
"""

READS_AND_WRITES = HEAD + """
large = torch.arange(2 << 20, dtype=torch.int64).pin_memory()
small = torch.full((1000,), 7, dtype=torch.int64).pin_memory()
def reads_and_writes():
    right = bool((large[12345:12445] == torch.arange(12345, 12445)).all()) and int(small[3]) == 7
    large[1], small[1] = 4242, 4243
    return 0 if right else 3
def ends_with_all_of_it_gone():
    globals().pop("large")
    globals().pop("small")
status = forked(reads_and_writes)
answer(status, int(large[1]), int(small[1]), forked(ends_with_all_of_it_gone), int(large[2]), large.is_pinned())
"""
test_with_stock_and_with_the_fork = answers({
    **{f"a child reads and its parent sees what it writes, {way}": (READS_AND_WRITES, [[0, 4242, 4243, 0, 2, True]] * 2, settings)
       for way, settings in EACH_WAY.items()},
    # As `datasets.map(num_proc=...)` and loaders do: pickle, shared memory of the child's own.
    "what a child can do with a tensor of its parent's": (HEAD + """
import pickle
kept = torch.full((8 * MIB,), 7, dtype=torch.uint8).pin_memory()
def right(condition):
    return 0 if condition else 3
def shares():
    before = kept.data_ptr()
    kept.share_memory_()
    # A private copy, as of any tensor: the parent does not see what the child writes.
    moved = kept.data_ptr() != before and kept.is_shared() and int(kept[5]) == 7
    kept[5] = 9
    return right(moved)
statuses = [
    forked(lambda: right(int(kept[:10].sum()) == 70)),
    forked(lambda: right(int(pickle.loads(pickle.dumps(kept))[-1]) == 7)),
    forked(lambda: right(int(kept.clone()[-1]) == 7)),
    forked(shares),
    # A grandchild.
    forked(lambda: forked(lambda: right(int(kept[-1]) == 7))),
]
answer(statuses, int(kept[5]), bool((kept == 7).all()))
""", [[[0] * 5, 7, True]] * 2),
}, how="both", quiet=True, **SHARES)


HIDDEN = HEAD + """
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
first = forked(lambda: 0)
kept = [pinned(8).fill_(7), pinned(9)]
statuses = [first, forked(lambda: 0), forked(lambda: int(kept[0][0])), forked(kept.clear)]
answer(statuses, bool((kept[0] == 7).all()))
"""
READ_ALL = [[0, 0, 7, 0], True]

test_what_children_share = answers({
    # Memory that the parent releases stays the child's, as with stock.
    "the parent frees and clears while children live": (HEAD + """
kept = pinned(16).fill_(7)
told, tell = os.pipe()
pid = os.fork()
if pid == 0:
    os.read(told, 1)
    os._exit(0 if bool((kept[::4096] == 7).all()) else 3)
del kept
pinbuddy.empty_cache()
left = segments()
again = pinned(16).fill_(9)
os.write(tell, b"1")
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
answer(status, left, bool((again == 9).all()))
""", [0, [], True], {"BUDDY_WARMUP": "off"}),
    "what is hidden is said once, at the first fork that hides something": (HIDDEN, [[0, 0, -11, 0], True], {"BUDDY_FORK": "hide"},
        ["17 MiB of pinned tensors, in 2 blocks", "BUDDY_FORK=hide", "SIGSEGV"]),
    "nothing is said where children read all": (HIDDEN, READ_ALL),
    "nothing is said where CUDA's memory is shared": (HIDDEN, READ_ALL, {"BUDDY_FORK": "hide", "BUDDY_BACKING": "cuda"}),
}, quiet=True, **SHARES)


def test_shared_memory_counts_once_and_in_no_child(run):
    """According to the kernel's counts of the process and of the machine, and to ours."""
    shared, private, pinned, huge, counts, after = run(HEAD + """
def status(name):
    return next(int(it.split()[1]) >> 10 for it in open("/proc/self/status") if it.startswith(name + ":"))
use_gpu()
# What a driver shares with nobody is not ours.
pinned(0.5)
before = {name: status(name) for name in ("RssShmem", "RssAnon")}
first = pinned(8)
pinbuddy.warm_up(wait=True)
grown = {name: status(name) - it for name, it in before.items()}
report = pinbuddy.stats()
huge = sum(it["huge_bytes"] for it in report["segments"]) >> 20
def counts():
    it = pinbuddy.stats()
    empty = it["state"] == "forked" and it["segments"] == [] and it["engine"] is None
    return 0 if empty and "forked child" in pinbuddy.memory_summary() and status("RssShmem") < 64 else 3
answer(grown["RssShmem"], grown["RssAnon"], report["engine"]["pinned_bytes"]["current"] >> 20, huge,
       forked(counts), pinbuddy.stats()["engine"]["pinned_bytes"]["current"] >> 20)
""", BUDDY_BLOCK_SIZE_MB=128, BUDDY_BLOCK_COUNT=2).value
    assert pinned == after and pinned >= 128 and abs(shared - pinned) <= 2
    assert private < 64 and counts == 0
    # Linux 6.1 and later: for an empty range the kernel only checks the advice.
    collapses = ctypes.CDLL(None).madvise(None, ctypes.c_size_t(0), 25) == 0
    if collapses and "[never]" not in ENABLED.read_text() and "[deny]" not in SHARED.read_text():
        assert huge > 0, "as the kernel counts them"


@pytest.mark.timing
@pytest.mark.slow("a figure of a release: what a fork takes")
def test_a_fork_takes_no_longer_than_with_stock(run):
    """At 2 GiB pinned; what is shared is neither copied nor are its tables."""
    program = """
torch.cuda.init()
kept = [pinned(256).fill_(1) for _ in range(8)]
def fork():
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    taken = time.perf_counter() - start
    os.waitpid(pid, 0)
    return taken
fork()
answer(sorted(fork() for _ in range(9))[4])
"""
    settings = {"BUDDY_BLOCK_COUNT": 0, "BUDDY_GROWTH": "exact", "PINBUDDY_SIM_SHARED": 1}
    ratios = []
    for _ in range(3):
        (stock,) = run(program, "stock", PINBUDDY_SIM_SHARED=1).value
        (fork,) = run(program, **settings).value
        ratios.append(fork / stock)
    assert statistics.median(ratios) < 2, ratios
