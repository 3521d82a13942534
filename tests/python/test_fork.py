"""A forked child has no engine: it neither hangs nor touches the parent's pins."""

SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "4"}


def test_the_childs_engine_is_off_and_the_parents_goes_on(run):
    assert run("""
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
    import gc; gc.collect()
pins = sim()
status = forked(child)
written = int(kept[2][0])
kept[2][:100].fill_(2)
whole = all(bool((it == i).all()) for i, it in enumerate(kept))
again = pinned(8)
answer(status, written, whole, of_engine(again), sim()["unpins"] - pins["unpins"], pinbuddy.enabled())
""", **SETTINGS, BUDDY_WARMUP="sync").value == [0, 99, True, True, 0, True]


def test_a_child_born_while_every_lock_is_busy(run):
    """Threads of the parent's allocate, free, clear and warm up at the moment of each fork."""
    assert run("""
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
""", **SETTINGS).value == [[0] * 30]


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


def test_a_child_that_ends_through_exit(run):
    """Its handlers run in the child as well, and must not wait for the parent's threads."""
    assert run("""
kept = pinned(8)
assert warm_up()["phase"] == "running"
answer(forked(lambda: ctypes.CDLL(None).exit(0)))
""", **SETTINGS, PINBUDDY_SIM_PIN_MS_PER_GB=8000, PINBUDDY_SIM_LOCK=0).value == [0]


def test_a_child_of_a_parent_that_used_nothing_has_an_engine_of_its_own(run):
    """Servers that load everything first and then fork: CUDA works in such a child."""
    assert run("""
# Reading statistics does not use CUDA.
pinbuddy.stats(), pinbuddy.memory_summary(), torch.cuda.host_memory_stats()
def child():
    kept = pinned(8).fill_(5)
    pinbuddy.warm_up(wait=True)
    assert of_engine(kept) and pinbuddy.enabled() and len(segments()) == 4
    assert bool((kept.to("cuda", non_blocking=True).cpu() == 5).all())
answer(forked(child), sim()["host_allocs"])
""", **SETTINGS).value == [0, 0]


def test_data_loaders_with_forked_workers(run):
    seen, of_engine, whole = run("""
        from program import *
        from torch.utils.data import DataLoader
        # Workers inherit it, read it, and free it at their end.
        kept, parent = pinned(8).fill_(1), os.getpid()
        def item(i):
            assert not pinbuddy.enabled() or os.getpid() == parent
            assert int(kept[-1]) == 1
            return torch.full((3 << 20,), i, dtype=torch.uint8)
        loader = DataLoader(Items(12, item), batch_size=2, num_workers=2, pin_memory=True, multiprocessing_context="fork")
        seen = []
        for epoch in range(2):
            for batch in loader:
                assert batch.is_pinned()
                on_device = batch.to("cuda", non_blocking=True)
                torch.cuda.synchronize()
                seen.append([int(row[0]) for row in on_device.cpu()])
                engines = of_engine(batch)
        answer(sorted(sum(seen, [])), engines, bool((kept == 1).all()))
        """, **SETTINGS).value
    assert seen == sorted([*range(12)] * 2) and of_engine and whole
