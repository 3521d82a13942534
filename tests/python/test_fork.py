"""A forked child has no engine: it neither hangs nor touches the parent's pins."""

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


def test_a_child_that_pins_gets_pytorchs_error_and_no_pin(run):
    """CUDA does not work in a forked child, which has to get stock's error."""
    program = """
def child():
    print("heard:", refused(lambda: pinned(8)).splitlines()[0], file=sys.stderr)
kept = pinned(8)
answer(forked(child))
"""
    stock, fork = run(program, "stock"), run(program, **SETTINGS)
    assert fork.value == stock.value == [0]
    heard = [[it for it in outcome.stderr.splitlines() if it.startswith("heard: ")] for outcome in (stock, fork)]
    assert heard[0] == heard[1] and len(heard[1]) == 1
