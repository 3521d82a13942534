"""What other streams still use is waited for where PyTorch waits, and no error of CUDA's is lost on the way."""

from conftest import needs

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


def test_where_memory_is_short_or_the_cache_is_emptied_it_waits_for_other_streams(with_plan):
    assert with_plan(USED + """
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
    print(json.dumps(seen))
    """, PINBUDDY_SIM_DEVICE_MB="64").quiet.value == [[True, True, [0, 0, False]], [True, True, [60, 0, False]]]


def test_who_is_short_of_memory_waits_though_another_thread_waits_already(with_plan):
    """The other one has the freed blocks in hand."""
    assert with_plan(USED + """
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
    print(json.dumps([busy, side.query(), stand()[:3]]))
    """, PINBUDDY_SIM_DEVICE_MB="64").quiet.value == [True, True, [56, 0, False]]


def test_a_dropped_region_goes_though_its_last_block_waited(with_plan):
    outcome = with_plan(USED + """
    it = used(100_000_000)
    fails(60)
    stands = [stand()[:3]]
    del it
    torch.cuda.synchronize()
    it = block(12)
    print(json.dumps([*stands, stand()[:3], torch.cuda.memory_stats()["active_bytes.all.current"] >> 20]))
    """, PINBUDDY_SIM_DEVICE_MB="64")
    # The region is PyTorch's, and serves.
    assert outcome.value == [[20, 20, True], [20, 0, True], 12]


@needs(15, "an allocator that gives back its cache beside a capture")
def test_beside_a_capture_the_cache_is_emptied_and_tries_count_as_pytorchs(with_plan):
    assert with_plan("""
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
    """, PINBUDDY_SIM_DEVICE_MB="64").value == [0, 1, 1]


def test_an_error_about_an_event_loses_no_block(with_plan):
    error, active, stands = with_plan(USED + """
    it = used(1000)
    del it
    torch.cuda.synchronize()
    error = fails(12)
    torch.cuda.empty_cache()
    print(json.dumps([error, torch.cuda.memory_stats()["active_bytes.all.current"], stand()[:3]]))
    """, PINBUDDY_SIM_FAULTS="cudaEventQuery:1=1").value
    assert error is not None and "invalid argument" in error
    assert (active, stands) == (0, [0, 0, False])


def test_an_error_before_a_region_is_taken_is_the_programs(with_plan):
    """CUDA tells of it with the next call, which is the one that asks for the region."""
    error, dropped, still, reserved = with_plan("""
    torch.cuda.empty_cache()
    ctypes.CDLL(None).cudaSetDevice(99)
    error = fails(12)
    dropped = counts()["dropped"]
    it = block(12)
    print(json.dumps([error, dropped, counts()["dropped"], counts()["reserved_bytes"] >> 20]))
    """).quiet.value
    assert error is not None and "invalid device ordinal" in error
    assert (dropped, still, reserved) == (False, False, 20)
