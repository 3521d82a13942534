"""Where memory is short a plan gives way: what is idle first, with the plan in force, and then the plan. No request fails for
which there is a place in a region of its stream."""

import pytest
from device_plans import STEPS, planned_runs

CONFS = ["expandable_segments:False", "expandable_segments:True"]


@pytest.mark.parametrize("conf", CONFS)
def test_idle_regions_of_other_streams_go_first(with_two, conf):
    """A stream whose region is busy keeps it, and its plan, since another stream's was idle."""
    assert with_two("""
    kept = block(12)
    large = block(30)
    print(json.dumps([[it["reserved_bytes"] >> 20, it["dropped"]] for it in pinbuddy.stats()["device"]]))
    """, PINBUDDY_SIM_DEVICE_MB="64", PYTORCH_ALLOC_CONF=conf).quiet.value == [[20, False], [0, False]]


def test_a_request_that_fails_while_another_thread_gives_back_is_tried_again(with_plan):
    """For a moment the region is no plan's and not PyTorch's yet: who asks then would be told that there is no memory."""
    assert with_plan("""
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
    print(json.dumps([stand(), seen, torch.cuda.memory_stats()["num_ooms"]]))
    """, PINBUDDY_SIM_DEVICE_MB="64").quiet.value == [[56, 0, False, 0], [], 0]


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
    print(json.dumps([elsewhere, served, seen, ooms, counts()["hits"] - hits]))
    """, PINBUDDY_SIM_DEVICE_MB="64", PYTORCH_ALLOC_CONF=conf, BUDDY_LOG="info")
    elsewhere, served, seen, ooms, hits = outcome.value
    assert not elsewhere
    assert served == [True, 1, [False, 0]]
    assert (seen, ooms) == ([], 0), "no request has failed"
    assert hits >= 3, "the plan is in force"
    assert sum("a part of its plan that is idle serves" in line for line in outcome.stderr.splitlines()) == 1
    assert not any("warning" in line for line in outcome.warnings)


def test_a_region_that_holds_a_block_stays_when_the_plan_is_dropped_and_is_not_lost(with_plan):
    """The block keeps the whole region reserved: what is idle there serves what PyTorch has no room for."""
    outcome = with_plan("""
    kept = block(12)
    dropped = fails(60)
    stands = [stand()]
    beside = torch.cuda.caching_allocator_alloc(torch.cuda.mem_get_info()[0])
    its = [kept, block(3), block(4), block(0.5)]
    marks = [torch.full(it.shape, 1 + at, dtype=torch.uint8) for at, it in enumerate(its)]
    for it, mark in zip(its, marks):
        it.copy_(mark)
    served = [planned(it) for it in its]
    text = fails(20)
    stands.append(stand())
    whole = [torch.equal(it.cpu(), mark) for it, mark in zip(its, marks)]
    del kept, its, it
    large = block(20)
    answer(served, dropped, text, whole, [*stands, stand()])
    """, PINBUDDY_SIM_DEVICE_MB="64")
    served, dropped, text, whole, stands = outcome.value
    assert all(served) and all(whole)
    assert "the plan of this device was dropped" in dropped
    assert "was dropped" not in text and "idle in regions of this device's plan" in text
    assert stands == [[20, 20, True, 0], [62, 20, True, 0], [62, 0, True, 0]]
    (warning,) = outcome.warnings
    assert "its plan is dropped" in warning, "said once"


def test_a_dropped_plans_region_goes_though_small_blocks_come_and_go(with_plan):
    """It serves in PyTorch's place for an iteration; then PyTorch is asked again, and the region is idle one day."""
    assert with_plan("""
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
    print(json.dumps([lent, stand()[1:]]))
    """, PINBUDDY_SIM_DEVICE_MB="64").value == [True, [0, True, 0]]


# A server: weights, a forward to see what that takes, a pool in what is left, and then requests. At last it has neither.
SERVER = """
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
    print(json.dumps([free >> 20, size, reserved, device and device[0]]))
"""


def test_a_pool_that_does_not_last_until_the_last_request_is_as_large_with_a_plan(run, twice):
    """One that lasts: examples/looks_first.py."""
    stock = run(SERVER, "stock", PINBUDDY_SIM_DEVICE_MB="1024").value
    (free, pool, reserved, _), (free_again, pool_again, with_plan, counts) = (
        it.value for it in twice(SERVER, PINBUDDY_SIM_DEVICE_MB="1024")
    )
    assert [free, pool] == [free_again, pool_again] == stock[:2]
    assert counts["hits"] > 400 and counts["misses"] == 0 and not counts["dropped"]
    # A segment more at most.
    assert with_plan <= reserved + 20
