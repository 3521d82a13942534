"""Planned device memory beside captures and pools: what is for one of them is PyTorch's, and everything else is as ever."""

from device_plans import MIB
from release import from_minor


# Threads open a pool each, and keep it open while `act` runs in this one.
POOL = """
    import threading
    def beside_a_pool(act):
        opened, over, pooled = threading.Event(), threading.Event(), []
        def keep_open():
            with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
                pooled.append(block(16))
                opened.set()
                over.wait()
                pooled.append(block(12))
        thread = threading.Thread(target=keep_open)
        thread.start()
        opened.wait()
        try:
            return act(), [planned(it) for it in pooled]
        finally:
            over.set()
            thread.join()
"""


def test_beside_a_pool_of_another_thread_the_plan_serves(with_plan):
    """Before 2.15 upstream's allocator takes an open pool for a capture: it records no event, and gives nothing back."""
    outcome = with_plan(POOL + """
    before = counts()
    for _ in range(5):
        _, inside = beside_a_pool(step)
        assert not any(inside), inside
    after = counts()
    served = [after[name] - before[name] for name in ("hits", "misses", "unplanned")]
    side = torch.cuda.Stream()
    def freed():
        it = block(12)
        it.record_stream(side)
        del it
        return planned(block(12))
    again, _ = beside_a_pool(freed)
    # The plan's place is free again, and the lane finds it.
    for _ in range(3):
        step()
    found = planned(block(12))
    def emptied():
        before = torch.cuda.memory_reserved()
        torch.cuda.empty_cache()
        return before - torch.cuda.memory_reserved()
    torch.cuda.synchronize()
    given_back, _ = beside_a_pool(emptied)
    print(json.dumps([served, again, found, given_back > 0]))
    """)
    served, again, found, given_back = outcome.value
    assert (served, again, found) == ([15, 0, 0], from_minor(15), True)
    assert given_back or not from_minor(15)


def test_a_recording_has_what_is_asked_beside_a_pool(twice):
    """A run with the plan would ask it for these."""
    _, outcome = twice("""
    from program import *
    import pinbuddy
    # The plan has a place for it, too: PyTorch would have a segment of 2 MiB.
    use_gpu()
    opened, over = threading.Event(), threading.Event()
    def keep_open():
        with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
            pooled = block(16)
            opened.set()
            over.wait()
    thread = threading.Thread(target=keep_open)
    thread.start()
    opened.wait()
    for _ in range(30):
        for mib in (3, 5):
            block(mib)
    over.set()
    thread.join()
    answer(*pinbuddy.stats()["device"] or [])
    """)
    (stream,) = outcome.value
    assert (stream["hits"], stream["unplanned"], stream["reserved_bytes"]) == (61, 0, 5 * MIB), stream


def test_a_capture_that_runs_out_of_memory_goes_on_and_the_plan_with_it(with_plan):
    """The allocator below gives nothing back in a capture: to drop the plan would help nobody."""
    outcome = with_plan("""
    side, there = torch.cuda.Stream(), block(12)
    there.record_stream(side)
    graph, text = torch.cuda.CUDAGraph(), ""
    with torch.cuda.graph(graph):
        # It has to wait for the other stream, where no event may be recorded.
        del there
        try:
            block(60)
        except torch.cuda.OutOfMemoryError as error:
            text = str(error)
        inside = block(1.5)
        inside.zero_()
    graph.replay()
    torch.cuda.synchronize()
    step()
    print(json.dumps([text, counts()["dropped"], counts()["reserved_bytes"]]))
    """, PINBUDDY_SIM_DEVICE_MB="64")
    text, dropped, reserved = outcome.value
    assert "Tried to allocate 60.00 MiB" in text and "pinbuddy" not in text, text
    assert (dropped, reserved) == (False, 20 * MIB)
    assert outcome.warnings == []


def test_storages_of_a_pool_that_is_put_back_have_the_deleter_that_pytorch_looks_for(with_plan):
    """What graph trees do between two generations: a pool's blocks are as they were, and so are who owns them."""
    outcome = with_plan("""
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
    print(json.dumps(standard))
    """)
    assert outcome.value is True


def test_memory_that_is_freed_while_caching_is_off_goes_back_to_the_cache(with_plan):
    """Else CUDA would be asked to free a part of a segment, or a segment in which others live."""
    outcome = with_plan("""
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
    for _ in range(3):
        step()
    hits = counts()["hits"]
    step()
    print(json.dumps([freed, again.data_ptr() == address, counts()["hits"] - hits]))
    """)
    assert outcome.value == [2048, True, 3]


def test_who_wants_no_cache_has_no_plan(with_plan):
    """`PYTORCH_NO_CUDA_MEMORY_CACHING=1` is for tools that find writes past a block's end."""
    outcome = with_plan("""
    step()
    print(json.dumps(pinbuddy.stats()["device"] in (None, [], {})))
    """, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    assert outcome.value is True
    assert any("PYTORCH_NO_CUDA_MEMORY_CACHING is set" in line for line in outcome.warnings)
