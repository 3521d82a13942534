"""Planned device memory with several streams and threads, in children, and beside captures and pools: what is for one of these is
PyTorch's, and everything else is as ever."""

import pytest
import table
from device_plans import MIB, answers
from release import from_minor

test_what_is_used_elsewhere_and_what_is_not_planned = answers({
    "a block that another stream uses waits for its event whoever serves it": ("""
    side = torch.cuda.Stream()
    ones, twos = (torch.full((12 * MIB,), mark, dtype=torch.uint8).pin_memory() for mark in (1, 2))
    it = block(12)
    it.copy_(ones)
    where = it.data_ptr()
    out = torch.zeros(12 * MIB, dtype=torch.uint8).pin_memory()
    with torch.cuda.stream(side):
        torch.cuda._sleep(400_000_000)
        out.copy_(it, non_blocking=True)
    it.record_stream(side)
    active = torch.cuda.memory_stats()["active_bytes.all.current"]
    del it
    pending = torch.cuda.memory_stats()["active_bytes.all.current"]
    allocated = torch.cuda.memory_allocated()
    states = {b["state"] for s in torch.cuda.memory_snapshot() for b in s["blocks"]}
    # The sequence goes on; then the first place is wanted, and still in use.
    rest()
    other = block(12)
    busy = not side.query()
    overlaps = where <= other.data_ptr() < where + 12 * MIB or other.data_ptr() <= where < other.data_ptr() + 12 * MIB
    other.copy_(twos)
    side.synchronize()
    whole = bool((out == 1).all())
    del other
    rest()
    again = block(12)
    of_plan = [busy, overlaps, whole, active - pending, allocated, "active_pending_free" in states, again.data_ptr() == where]
    # PyTorch's allocator knows its own memory by the deleter, and would ignore ours.
    ones = torch.full((MIB // 2,), 1, dtype=torch.uint8).pin_memory()
    small = block(0.5)
    small.copy_(ones)
    where, out = small.data_ptr(), torch.zeros(MIB // 2, dtype=torch.uint8).pin_memory()
    with torch.cuda.stream(side):
        torch.cuda._sleep(400_000_000)
        out.copy_(small, non_blocking=True)
    small.record_stream(side)
    del small
    others = [block(0.5) for _ in range(8)]
    again = any(it.data_ptr() == where for it in others)
    busy = not side.query()
    torch.cuda.synchronize()
    answer(of_plan, [busy, again, bool((out == 1).all())])
    """, [[True, False, True, 0, 0, True, True], [True, False, True]]),
    # The one that is planned in `kept`'s place overlaps what lives.
    "captures and pools are PyTorch's": ("""
    graph, there = torch.cuda.CUDAGraph(), block(12)
    before = counts()
    side = torch.cuda.Stream()
    kept = block(20)
    with torch.cuda.graph(graph):
        inside = block(12)
        inside.copy_(there)
        # Freed in a capture, though another stream has used it.
        kept.record_stream(side)
        del kept
        there.copy_(inside)
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        pooled = block(16)
    graph.replay()
    torch.cuda.synchronize()
    after = counts()
    where = [planned(it) for it in (there, inside, pooled)]
    del there
    last = block(16)
    answer(where, after["hits"] - before["hits"], after["unplanned"] - before["unplanned"], planned(last))
    """, [[True, False, False], 0, 0, True]),
    # What graph trees do between two generations: a pool's blocks are as they were, and so are who owns them.
    "storages of a pool that is put back and what is freed while caching is off are PyTorch's": ("""
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
    # What is freed while caching is off goes back to the cache. Else CUDA would be asked to free a part of a segment, or one with others.
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
    """, [True, 2048, True, 3]),
})

POOL = """
    pooled = []
    @contextlib.contextmanager
    def pool():
        with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
            pooled.append(block(16))
            yield
            pooled.append(block(12))
"""

test_beside_a_capture_or_a_pool_of_another_thread = answers({
    # Before 2.15 upstream's allocator takes an open pool for a capture: it records no event, and gives nothing back.
    "the plan serves": (POOL + """
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
    answer(served, again, found, given_back or not again)
    """, [[15, 0, 0], from_minor(15), True, True]),
    # The allocator below gives nothing back in a capture: to drop the plan would help nobody.
    "a capture that runs out of memory goes on and the plan with it": ("""
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
    answer("Tried to allocate 60.00 MiB" in text, "pinbuddy" in text, counts()["dropped"], counts()["reserved_bytes"])
    """, [True, False, False, 20 * MIB], {"PINBUDDY_SIM_DEVICE_MB": "64"}),
    # It is for tools that find writes past a block's end.
    "who wants no cache has no plan": ("""
    step()
    answer(pinbuddy.stats()["device"] in (None, [], {}))
    """, [True], {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, "PYTORCH_NO_CUDA_MEMORY_CACHING is set"),
})

test_a_recorded_run_and_the_next_one = table.answers({
    "each stream has its own region": ("""
    side = torch.cuda.Stream()
    for _ in range(30):
        for mib in (14, 26):
            it = block(mib)
            with torch.cuda.stream(side):
                beside = block(mib + 2)
            del it, beside
    device = pinbuddy.stats()["device"]
    answer(device and [[it[name] for name in ("stream", "hits", "reserved_bytes")] for it in device])
    """, [[None], [[[0, 60, 26 * MIB], [1, 60, 28 * MIB]]]]),
    # Peaks are asked for where a stream has its region for longer than the next one.
    "the region of another stream is no block": ("""
    side, peaks = torch.cuda.Stream(), []
    def use(*sizes):
        for mib in sizes:
            block(mib)
    for step in range(30):
        use(40, 24)
        torch.cuda.reset_peak_memory_stats()
        with torch.cuda.stream(side):
            use(3, 5)
        peaks.append(torch.cuda.max_memory_allocated())
    answer(*peaks)
    """, [[5 * MIB] * 30] * 2),
    # The lane does not see the longer one, and is where it was.
    "a request longer than every region is not asked about and streams keep their numbers": ("""
    # Of a stream without a plan, which is the first one all the same.
    block(64)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for mib in (12, 20) * 30:
            block(mib)
        def counts():
            return [[it["stream"], it["hits"], it["unplanned"]] for it in pinbuddy.stats()["device"] or []]
        before, reserved = counts(), torch.cuda.memory_reserved() >> 20
        # What is recorded has none of it.
        longer = before and block(24)
        it = block(12)
    answer(before, counts(), before and [reserved, torch.cuda.memory_reserved() >> 20])
    """, [[[], [], []], [[[1, 60, 0]], [[1, 61, 0]], [84, 108]]]),
    "a child leaves its parent's plan alone": ("""
    for _ in range(40):
        kept = [block(mib) for mib in (3, 2)]
    def child():
        kept.clear()
        assert pinbuddy.stats()["device"] is None
    status = forked(child, sys.exit)
    folder = os.path.dirname(os.environ["BUDDY_DEVICE_PLAN"])
    answer(status, len(os.listdir(folder)))
    """, [[0, 0], [0, 1]]),
    # What comes last finds no gap: three pages more than a plan needs.
    "expandable segments hold a region": ("""
    for _ in range(30):
        first, second = block(30), block(12)
        del first
        third = block(34)
        del second, third
    device = pinbuddy.stats()["device"]
    answer(device and device[0]["hits"], torch.cuda.memory_reserved() >> 20)
    """, [[None, 80], [90, 60]], {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
    # A run with the plan would ask it for these.
    "a recording has what is asked beside a pool": ("""
    # The plan has a place for it, too: PyTorch would have a segment of 2 MiB.
    use_gpu()
""" + POOL + """
    with elsewhere(pool()):
        for mib in (3, 5) * 30:
            block(mib)
    # A short request lies apart from long ones.
    answer(*([it[name] for name in ("hits", "unplanned", "reserved_bytes")] for it in pinbuddy.stats()["device"] or []))
    """, [[], [[61, 0, 5 * MIB + 4096]]]),
}, how="twice", quiet=True)

# Threads that ask at once: on one stream and on streams of their own, with streams that use one another's blocks, and caches that are
# emptied meanwhile. The program looks whether anybody else writes to a block.
THREADS = 3
HEAD = f"""
    PAGE, THREADS = 4096, {THREADS}
    streams = [torch.cuda.Stream() for _ in range(1 if os.environ["STREAMS"] == "shared" else THREADS)]
    def sizes_of(number):
        draw = random.Random(number)
        return [draw.randrange(MIB + 1, 6 * MIB) / MIB for _ in range(12)]
    # Streams are numbered by their first requests.
    for stream in streams:
        with torch.cuda.stream(stream):
            block(2)
"""
# The same, by one thread after the other.
RECORD = HEAD + """
    for step in range(30):
        for number in range(THREADS):
            with torch.cuda.stream(streams[number % len(streams)]):
                live = []
                for at, size in enumerate(sizes_of(number)):
                    live.append(block(size))
                    if at % 4 == 3:
                        del live[at % len(live)]
                del live
"""
# Each thread keeps some blocks for a while and writes their ends, on the stream that it asked on.
PROGRAM = HEAD + """
    marks = [torch.full((PAGE,), mark, dtype=torch.uint8).pin_memory() for mark in range(100)]
    ended, turns = [], threading.Barrier(THREADS)

    def work(number):
        stream, other = streams[number % len(streams)], torch.cuda.Stream()
        out = torch.empty(PAGE, dtype=torch.uint8, pin_memory=True)
        def check(tensor, mark):
            for part in (tensor[:PAGE], tensor[-PAGE:]):
                out.copy_(part, non_blocking=True)
                stream.synchronize()
                assert torch.equal(out, marks[mark]), [number, tensor.numel(), mark]
        for step in range(12):
            if step % 4 == 0:
                # So that they run at once.
                turns.wait(120)
            live = []
            for at, size in enumerate(sizes_of(number)):
                mark, tensor = (number * 25 + step + at) % 100, block(size)
                tensor[:PAGE].copy_(marks[mark], non_blocking=True)
                tensor[-PAGE:].copy_(marks[mark], non_blocking=True)
                live.append((tensor, mark))
                if at % 4 == 3:
                    check(*live.pop(at % len(live)))
                if at % 6 == 5:
                    tensor, mark = live.pop(0)
                    check(tensor, mark)
                    other.wait_stream(stream)
                    with torch.cuda.stream(other):
                        # Read late: nobody may have the place before.
                        torch.cuda._sleep(200_000)
                        late = tensor[:PAGE].to("cpu", non_blocking=True)
                    tensor.record_stream(other)
                    del tensor
                    if step % 3 == 0:
                        other.synchronize()
                        assert torch.equal(late, marks[mark]), [number, "late", mark]
            if os.environ["CLEAR"] == "yes" and step % 4 == number:
                torch.cuda.empty_cache()
            for it in live:
                check(*it)
            tensor = live = None

    def watched(number):
        with torch.cuda.stream(streams[number % len(streams)]):
            if error := refused(lambda: work(number)):
                turns.abort()
        ended.append(error)

    def reports():
        while len(ended) < THREADS:
            torch.cuda.memory_stats()
            torch.cuda.memory_snapshot()
            time.sleep(0.05)

    together(reports, *[lambda number=number: watched(number) for number in range(THREADS)])
    torch.cuda.synchronize()
    device = pinbuddy.stats()["device"]
    torch.cuda.empty_cache()
    # What was freed for another stream is settled, and nothing lives.
    stats = torch.cuda.memory_stats()
    ends = [stats[name + ".all.current"] for name in ("allocation", "active", "allocated_bytes", "requested_bytes")]
    answer(ended, ends, torch.cuda.memory_reserved(), device)
"""


@pytest.mark.parametrize("streams", ["shared", "own"])
def test_threads_share_a_plan(run, tmp_path, streams):
    settings = {"BUDDY_DEVICE_PLAN": str(tmp_path / "device.json"), "STREAMS": streams}
    run(RECORD, **settings)
    for clear in ("no", "yes"):
        ended, ends, reserved, device = run(PROGRAM, CLEAR=clear, **settings).value
        assert ended == [None] * THREADS and ends == [0] * 4, (ended, ends)
        assert reserved < 4 << 20, "the regions are given back, all but what is small"
        assert len(device) == (1 if streams == "shared" else THREADS), device
        assert sum(it["hits"] + it["borrowed"] for it in device) > 100, device
