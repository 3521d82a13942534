"""Where memory is short a plan gives way: what is idle first, with the plan in force, and then the plan. No request fails for
which there is a place in a region of its stream. What other streams still use is waited for where PyTorch waits; who observes running
out of memory is told what the program is told, and no error of CUDA's is lost on the way. Of a program that goes on after a request failed, as
a search for the largest batch does, no plan is made, so its later runs find what they find without one."""

import pytest
import table
from conftest import needs
from device_plans import MIB, STEPS, answers, planned_runs

SHORT = {"PINBUDDY_SIM_DEVICE_MB": "64"}
CONFS = ["expandable_segments:False", "expandable_segments:True"]
IS_DROPPED = "its plan is dropped"

OBSERVE = """
    seen = observed()
    def failures():
        return torch.cuda.memory_stats()["num_ooms"]
    def retries():
        return torch.cuda.memory_stats()["num_alloc_retries"]
"""
# A planned block that another stream uses for a while.
USED = """
    side = torch.cuda.Stream()
    def used(cycles=300_000_000):
        it = block(12)
        assert planned(it)
        it.record_stream(side)
        with torch.cuda.stream(side):
            torch.cuda._sleep(cycles)
        return it
"""

test_it_gives_way = answers({
    # For a moment the region is no plan's and not PyTorch's yet: who asks then would be told that there is no memory.
    "a request that fails while another thread gives back is tried again": ("""
    import torch.cuda._gpu_trace
    torch.cuda.empty_cache()
    beside = torch.cuda.caching_allocator_alloc(34 * MIB)
    step()
    seen = observed()
    asked, going = threading.Event(), threading.Event()
    def goes(address):
        # PyTorch says so before the region is its own again.
        if threading.current_thread() is clears:
            going.set()
            asked.wait(0.5)
    torch.cuda._gpu_trace.register_callback_for_memory_deallocation(goes)
    torch._C._activate_gpu_trace()
    clears = threading.Thread(target=torch.cuda.empty_cache)
    clears.start()
    going.wait()
    kept = block(22)
    asked.set()
    clears.join()
    answer(stand(), seen, torch.cuda.memory_stats()["num_ooms"])
    """, [[56, 0, False, 0], [], 0]),
    # It serves in PyTorch's place for an iteration; then PyTorch is asked again, and the region is idle one day.
    "a dropped plan's region goes though small blocks come and go": ("""
    before = block(0.5)
    kept = block(12)
    fails(60)
    beside = torch.cuda.caching_allocator_alloc(torch.cuda.mem_get_info()[0])
    it = block(3)
    lent = planned(it)
    torch.cuda.caching_allocator_delete(beside)
    del kept, it
    torch.cuda.empty_cache()
    for _ in range(300):
        before = block(0.5)
    torch.cuda.empty_cache()
    large = block(57)
    answer(lent, stand()[1:])
    """, [True, [0, True, 0]], IS_DROPPED),
    "where memory is short or the cache is emptied it waits for other streams": (USED + """
    seen = []
    # PyTorch, too, waits for all events before it says that it has no memory.
    for act in (torch.cuda.empty_cache, lambda: block(60)):
        step()
        region = block(12).data_ptr()
        rest()
        it = used()
        del it
        busy = not side.query()
        kept = act()
        seen.append([busy, side.query(), stand()[:3]])
    answer(*seen)
    """, [[True, True, [0, 0, False]], [True, True, [60, 0, False]]]),
    # The other one has the freed blocks in hand.
    "who is short of memory waits though another thread waits already": (USED + """
    torch.cuda.empty_cache()
    beside = torch.cuda.caching_allocator_alloc(34 * MIB)
    # The region lies elsewhere now.
    region = block(12).data_ptr()
    rest()
    it = used(1_000_000_000)
    del it
    clears = threading.Thread(target=torch.cuda.empty_cache)
    clears.start()
    time.sleep(0.2)
    busy = not side.query()
    kept = block(22)
    clears.join()
    answer(busy, side.query(), stand()[:3])
    """, [True, True, [56, 0, False]]),
    # It is PyTorch's then, and serves.
    "a dropped region goes though its last block waited": (USED + """
    it = used(100_000_000)
    fails(60)
    stands = [stand()[:3]]
    del it
    torch.cuda.synchronize()
    it = block(12)
    answer(*stands, stand()[:3], torch.cuda.memory_stats()["active_bytes.all.current"] >> 20)
    """, [[20, 20, True], [20, 0, True], 12], IS_DROPPED),
    # Without a plan the allocator gives back its cache for the first one. In a capture the plan does not give way, and the observer is
    # told at once. The region comes back after a while.
    "a request that is served when tried again is no failure, and one in a capture is": (OBSERVE + """
    large = block(60)
    served = [list(seen), failures(), retries(), counts()["dropped"]]
    failed = [bool(fails(60)), list(seen), failures(), retries()]
    torch.cuda.reset_accumulated_memory_stats()
    reset = [failures(), retries()]
    del large, seen[:]
    step(60)
    hits = counts()["hits"]
    kept, graph = block(12), torch.cuda.CUDAGraph()
    before = counts()["hits"] - hits, failures()
    with torch.cuda.graph(graph):
        in_capture = bool(fails(60))
        kept.copy_(kept)
    answer(served, failed, reset, before[0], in_capture, seen, failures() - before[1], counts()["dropped"])
    """, [[[], 0, 1, False], [True, [60 * MIB], 1, 2], [0, 0], 1, True, [60 * MIB], 1, False]),
    # The region is longer than what is left; the request is not.
    "a region that cannot be had is no failure": (OBSERVE + """
    torch.cuda.empty_cache()
    beside = torch.cuda.caching_allocator_alloc(50 * MIB)
    it = block(12)
    answer(seen, failures(), retries(), counts()["dropped"])
    """, [[], 0, 0, True], "the plan for device 0 is not used"),
    "beside a capture the cache is emptied and tries count as PyTorch's": pytest.param(("""
    @contextlib.contextmanager
    def capture():
        with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=torch.cuda.Stream(), capture_error_mode="thread_local"):
            torch.empty(1000, device="cuda")
            yield
    with elsewhere(capture()):
        torch.cuda.empty_cache()
        emptied = counts()["reserved_bytes"]
        kept = block(12)
        fails(60)
        stats = torch.cuda.memory_stats()
    answer(emptied, stats["num_ooms"], stats["num_alloc_retries"])
    """, [0, 1, 1], IS_DROPPED), marks=needs(15, "an allocator that gives back its cache beside a capture")),
    # The block keeps the whole region reserved: what is idle there serves what PyTorch has no room for.
    "a region that holds a block stays when the plan is dropped and is not lost": ("""
    kept = block(12)
    dropped = fails(60)
    stands = [stand()]
    beside = torch.cuda.caching_allocator_alloc(torch.cuda.mem_get_info()[0])
    its = [kept, block(3), block(4), block(0.5)]
    marks = [torch.full(it.shape, 1 + at, dtype=torch.uint8) for at, it in enumerate(its)]
    for it, mark in zip(its, marks):
        it.copy_(mark)
    served = all(planned(it) for it in its)
    text = fails(20)
    stands.append(stand())
    whole = all(torch.equal(it.cpu(), mark) for it, mark in zip(its, marks))
    del kept, its, it
    large = block(20)
    said = ["the plan of this device was dropped" in dropped, "was dropped" in text, "idle in regions of this device's plan" in text]
    answer(served, whole, said, *stands, stand())
    """, [True, True, [True, False, True], [20, 20, True, 0], [62, 20, True, 0], [62, 0, True, 0]], IS_DROPPED),
    "an error says how much of the regions is idle": ("""
    kept, says = block(12), "of what is allocated by PyTorch 8 MiB are idle in regions of this device's plan"
    answer(*([it.startswith("OutOfMemoryError"), f"pinbuddy: {says}" in it or f"; {says}" in it] for it in (fails(500), fails(60))))
    """, [[True, True]] * 2, IS_DROPPED),
    "where giving back is not enough the error says so": ("""
    beside = torch.cuda.caching_allocator_alloc(30 * MIB)
    answer("which was idle, was given back" in fails(50), stand()[1:])
    """, [True, [0, False, 1]]),
}, **SHORT)

# A stream whose region is busy keeps it, and its plan, since another stream's was idle.
IDLE_ELSEWHERE = ("""
    kept = block(12)
    large = block(30)
    answer(*([it["reserved_bytes"] >> 20, it["dropped"]] for it in pinbuddy.stats()["device"]))
    """, [[20, False], [0, False]])

test_with_two_streams = table.answers({
    **{f"idle regions of other streams go first, {conf}": (*IDLE_ELSEWHERE, {"PYTORCH_ALLOC_CONF": conf}) for conf in CONFS},
    # Idle regions of another stream are given back first, and then the plan of the device is dropped.
    "a failure counts once though it is tried three times": (OBSERVE + """
    kept = block(12)
    before = retries()
    told = [bool(fails(60)), list(seen), failures(), retries() - before]
    answer(told, [(it["dropped"], it["given_back"]) for it in pinbuddy.stats()["device"]])
    """, [[True, [60 * MIB], 1, 1], [[True, 0], [True, 1]]], IS_DROPPED),
}, how="with_two", quiet=True, **SHORT)


@pytest.mark.parametrize("conf", CONFS)
def test_what_is_idle_in_a_region_serves_where_there_is_no_other_memory(run, tmp_path, conf):
    """The next request but one wants it, which is six times as long: so it is lent to nobody as long as there is other memory.
    PyTorch is asked once, and not in vain for each request: each time it would give back all that it has cached, and wait for the
    device."""
    longer = STEPS.replace("(20, 16)", "(32, 30)").replace("20 * MIB", "32 * MIB")
    outcome = planned_runs(run, tmp_path / "device.json", longer)("""
    kept = block(12)
    elsewhere = planned(block(5))
    torch.cuda.empty_cache()
    beside = torch.cuda.caching_allocator_alloc(28 * MIB)
    seen = observed()
    torch.cuda.memory._record_memory_history()
    served = [planned(block(5)) for _ in range(20)]
    asked = sum(it["action"] == "oom" for it in torch.cuda.memory._snapshot()["device_traces"][0])
    served = [all(served), asked, stand()[2:]]
    ooms = torch.cuda.memory_stats()["num_ooms"]
    del kept
    hits = counts()["hits"]
    step(2)
    answer(elsewhere, served, seen, ooms, counts()["hits"] - hits >= 3)
    """, PYTORCH_ALLOC_CONF=conf, BUDDY_LOG="info", **SHORT)
    assert outcome.value == [False, [True, 1, [False, 0]], [], 0, True]
    assert sum("a part of its plan that is idle serves" in line for line in outcome.stderr.splitlines()) == 1
    assert not any("warning" in line for line in outcome.warnings)


test_an_error_of_cudas_is_the_programs_and_loses_no_block = answers({
    # CUDA tells of it with the next call, which is the one that asks for the region.
    "before a region is taken": ("""
    torch.cuda.empty_cache()
    ctypes.CDLL(None).cudaSetDevice(99)
    error = fails(12)
    dropped = counts()["dropped"]
    it = block(12)
    answer("invalid device ordinal" in error, dropped, stand()[1:3])
    """, [True, False, [20, False]]),
    "about an event": (USED + """
    it = used(1000)
    del it
    torch.cuda.synchronize()
    error = fails(12)
    torch.cuda.empty_cache()
    answer("invalid argument" in error, torch.cuda.memory_stats()["active_bytes.all.current"], stand()[:3])
    """, [True, 0, [0, 0, False]], {"PINBUDDY_SIM_FAULTS": "cudaEventQuery:1=1"}),
})


def test_a_pool_that_does_not_last_until_the_last_request_is_as_large_with_a_plan(run, twice):
    """One that lasts: examples/looks_first.py."""
    # A server: weights, a forward to see what that takes, a pool in what is left, and then requests. At last it has neither.
    program = """
    weights = [block(10) for _ in range(12)]
    def forward(mib):
        hidden = block(mib)
        for _ in range(8):
            wide = block(3 * mib)
            hidden = block(mib)
            del wide
    forward(24)
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    pool = [block((free - 128 * MIB) // 8 // MIB) for _ in range(8)]
    for number in range(40):
        forward([24, 6, 12, 3][number % 4])
    size = len(pool) * pool[0].numel() >> 20
    reserved = torch.cuda.max_memory_reserved() >> 20
    del pool, weights; it = block(3)
    device = os.environ.get("BUDDY_DEVICE_PLAN") and __import__("pinbuddy").stats()["device"]
    answer(free >> 20, size, reserved, device and device[0])
    """
    large = {"PINBUDDY_SIM_DEVICE_MB": "1024"}
    stock = run(program, "stock", **large).value
    first, second = (it.value for it in twice(program, **large))
    assert first[:2] == second[:2] == stock[:2]
    reserved, counts = second[2:]
    assert counts["hits"] > 400 and counts["misses"] == 0 and not counts["dropped"]
    # A segment more at most.
    assert reserved <= first[2] + 20


OTHER = pytest.mark.slow("the same search on a smaller and a larger device")


@pytest.mark.parametrize("mib", [256, pytest.param(160, marks=OTHER), pytest.param(352, marks=OTHER)])
def test_a_search_finds_the_same_batch_in_each_run(twice, run, mib):
    # Bisects for the largest batch of which two steps fit, then takes so many steps with it. Prints batches with what became of them.
    program = """
    weights = [block(4) for _ in range(8)]
    def step(batch):
        kept = []
        for _ in range(8):
            buffer = block(batch * 5 / 2)
            kept.append(block(batch))
            del buffer
        gradients = []
        while kept:
            gradients.append(block(4))
            del kept[-1]
    def fits(batch):
        try:
            step(batch), step(batch)
            return True
        except torch.cuda.OutOfMemoryError:
            pass
        gc.collect()
        torch.cuda.empty_cache()
        return False
    tries, low, high = [], 0, 64
    while high - low > 1:
        middle = (low + high + 1) // 2
        tries.append([middle, fits(middle)])
        if tries[-1][1]:
            low = middle
        else:
            high = middle
    later = [fits(low) for _ in range(10)]
    print(json.dumps([tries, later, pinbuddy.stats()["device"]]))
    """
    settings = {"PINBUDDY_SIM_DEVICE_MB": str(mib)}
    stock = run(program, BUDDY_DISABLE="1", **settings)
    failed = [batch for batch, fits in stock.value[0] if not fits]
    assert failed and all(stock.value[1])
    for outcome in twice(program, **settings):
        assert outcome.value == stock.value
        assert outcome.warnings == []
