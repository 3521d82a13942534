"""Planned device memory beside captures and pools: what is for one of them is PyTorch's, and everything else is as ever."""

from device_plans import MIB
from release import from_minor

POOL = """
    pooled = []
    @contextlib.contextmanager
    def pool():
        with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
            pooled.append(block(16))
            yield
            pooled.append(block(12))
"""


def test_beside_a_pool_of_another_thread_the_plan_serves(with_plan):
    """Before 2.15 upstream's allocator takes an open pool for a capture: it records no event, and gives nothing back."""
    served, again, found, given_back = with_plan(POOL + """
    before = counts()
    for _ in range(5):
        with elsewhere(pool()):
            step()
    after = counts()
    assert not any(planned(it) for it in pooled)
    served = [after[name] - before[name] for name in ("hits", "misses", "unplanned")]
    side = torch.cuda.Stream()
    with elsewhere(pool()):
        it = block(12)
        it.record_stream(side)
        del it
        again = planned(block(12))
    # The plan's place is free again, and the lane finds it.
    step(3)
    found = planned(block(12))
    torch.cuda.synchronize()
    with elsewhere(pool()):
        before = torch.cuda.memory_reserved()
        torch.cuda.empty_cache()
        given_back = before > torch.cuda.memory_reserved()
    answer(served, again, found, given_back)
    """).value
    assert (served, again, found) == ([15, 0, 0], from_minor(15), True)
    assert given_back or not from_minor(15)


def test_a_recording_has_what_is_asked_beside_a_pool(twice):
    """A run with the plan would ask it for these."""
    _, outcome = twice("""
    # The plan has a place for it, too: PyTorch would have a segment of 2 MiB.
    use_gpu()
""" + POOL + """
    with elsewhere(pool()):
        for mib in (3, 5) * 30:
            block(mib)
    answer(*pinbuddy.stats()["device"] or [])
    """)
    (stream,) = outcome.value
    assert (stream["hits"], stream["unplanned"], stream["reserved_bytes"]) == (61, 0, 5 * MIB), stream


def test_a_capture_that_runs_out_of_memory_goes_on_and_the_plan_with_it(with_plan):
    """The allocator below gives nothing back in a capture: to drop the plan would help nobody."""
    text, dropped, reserved = with_plan("""
    side, there = torch.cuda.Stream(), block(12)
    there.record_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        # It has to wait for the other stream, where no event may be recorded.
        del there
        text = fails(60)
        inside = block(1.5)
        inside.zero_()
    graph.replay()
    torch.cuda.synchronize()
    step()
    print(json.dumps([text, counts()["dropped"], counts()["reserved_bytes"]]))
    """, PINBUDDY_SIM_DEVICE_MB="64").quiet.value
    assert "Tried to allocate 60.00 MiB" in text and "pinbuddy" not in text, text
    assert (dropped, reserved) == (False, 20 * MIB)


def test_storages_of_a_pool_that_is_put_back_and_what_is_freed_while_caching_is_off_are_pytorchs(with_plan):
    """What graph trees do between two generations: a pool's blocks are as they were, and so are who owns them."""
    assert with_plan("""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
    state = torch._C._cuda_getCheckpointState(0, graph.pool())
    address, bytes = kept.data_ptr(), kept.untyped_storage().nbytes()
    del kept
    again = torch._C._construct_storage_from_data_pointer(address, torch.device("cuda", 0), bytes)
    torch._C._cuda_setCheckpointPoolState(0, state, [], [again._cdata])
    standard = torch._C._has_Standard_Deleter(again._cdata)
    del again
    # What is freed while caching is off goes back to the cache. Else CUDA would be asked to free a part of a segment, or a segment in which others live.
    small = [torch.empty(1000, dtype=torch.uint8, device="cuda").fill_(it) for it in range(4)]
    step()
    before = torch.cuda.memory_allocated()
    torch._C._cuda_cudaCachingAllocator_enable(False)
    address = small[0].data_ptr()
    del small[0], small[1]
    torch.cuda.empty_cache()
    torch._C._cuda_cudaCachingAllocator_enable(True)
    freed = before - torch.cuda.memory_allocated()
    again = torch.empty(1000, dtype=torch.uint8, device="cuda")
    step(3)
    hits = counts()["hits"]
    step()
    answer(standard, freed, again.data_ptr() == address, counts()["hits"] - hits)
    """).value == [True, 2048, True, 3]


def test_who_wants_no_cache_has_no_plan(with_plan):
    """`PYTORCH_NO_CUDA_MEMORY_CACHING=1` is for tools that find writes past a block's end."""
    outcome = with_plan("""
    step()
    print(json.dumps(pinbuddy.stats()["device"] in (None, [], {})))
    """, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    assert outcome.value is True
    assert any("PYTORCH_NO_CUDA_MEMORY_CACHING is set" in line for line in outcome.warnings)
