"""Who observes running out of memory is told what the program is told: not of a request for which the plan gave way."""

from device_plans import MIB

OBSERVE = """
    seen = observed()
    def failures():
        return torch.cuda.memory_stats()["num_ooms"]
    def retries():
        return torch.cuda.memory_stats()["num_alloc_retries"]
"""


def test_a_request_that_is_served_when_tried_again_is_no_failure_and_one_in_a_capture_is(with_plan):
    outcome = with_plan(OBSERVE + """
    # More than there is beside the region; without a plan the allocator gives back its cache for it.
    large = block(60)
    served = [list(seen), failures(), retries(), counts()["dropped"]]
    failed = [bool(fails(60)), list(seen), failures(), retries()]
    torch.cuda.reset_accumulated_memory_stats()
    reset = [failures(), retries()]
    del large, seen[:]
    # The region comes back after a while.
    step(60)
    hits = counts()["hits"]
    kept, graph = block(12), torch.cuda.CUDAGraph()
    before = counts()["hits"] - hits, failures()
    with torch.cuda.graph(graph):
        in_capture = bool(fails(60))
        kept.copy_(kept)
    answer(served, failed, reset, before[0], in_capture, seen, failures() - before[1], counts()["dropped"])
    """, PINBUDDY_SIM_DEVICE_MB="64")
    assert outcome.value[:3] == [[[], 0, 1, False], [True, [60 * MIB], 1, 2], [0, 0]]
    # In a capture the plan does not give way, and the observer is told at once.
    assert outcome.value[3:] == [1, True, [60 * MIB], 1, False]


def test_a_failure_counts_once_though_it_is_tried_three_times(with_two):
    """Idle regions of another stream are given back first, and then the plan is dropped."""
    told, stands = with_two(OBSERVE + """
    kept = block(12)
    before = retries()
    told = [bool(fails(60)), list(seen), failures(), retries() - before]
    print(json.dumps([told, [(it["dropped"], it["given_back"]) for it in pinbuddy.stats()["device"]]]))
    """, PINBUDDY_SIM_DEVICE_MB="64").value
    assert told == [True, [60 * MIB], 1, 1]
    # That is the plan of the device.
    assert stands == [[True, 0], [True, 1]]


def test_a_region_that_cannot_be_had_is_no_failure(with_plan):
    outcome = with_plan(OBSERVE + """
    torch.cuda.empty_cache()
    beside = torch.cuda.caching_allocator_alloc(50 * MIB)
    # The region is longer than what is left; the request is not.
    it = block(12)
    print(json.dumps([seen, failures(), retries(), counts()["dropped"], planned(it)]))
    """, PINBUDDY_SIM_DEVICE_MB="64")
    assert outcome.value[:4] == [[], 0, 0, True]
    (warning,) = outcome.warnings
    assert "the plan for device 0 is not used" in warning


def test_where_giving_back_is_not_enough_the_error_says_so(with_plan):
    text, (_, *stands) = with_plan("""
    beside = torch.cuda.caching_allocator_alloc(30 * MIB)
    answer(fails(50), stand())
    """, PINBUDDY_SIM_DEVICE_MB="64").quiet.value
    assert "which was idle, was given back" in text and stands == [0, False, 1]
