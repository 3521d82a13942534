"""What is pinned when nothing fits, and how much of it is kept."""

from conftest import BLOCK_MB, MIB, engine_segment

SETTINGS = {"BUDDY_WARMUP": "off", "BUDDY_BLOCK_SIZE_MB": "64", "PINBUDDY_SIM_LOCK": "0"}


def test_more_is_pinned_as_demand_shows(run):
    """Not for the first request, which may be the only one; then for those that come after it, too."""
    outcome = run("""
        from program import *
        kept = [pinned(20)]
        sizes = [segments()]
        kept += [pinned(20) for _ in range(19)]
        answer(*sizes, segments(), sim()["pins"])
        """, **SETTINGS)
    first, all_of_them, pins = outcome.value
    assert first == [20]
    assert pins < 12, "a region serves several requests"
    assert 400 <= sum(all_of_them) <= 400 * 1.2 + 32 and max(all_of_them) <= 64


def test_exact_growth_pins_the_request_and_no_more(run):
    outcome = run("""
        from program import *
        kept = [pinned(20.5), pinned(33)]
        sizes = segments()
        kept.pop()
        kept += [pinned(16), pinned(16)]
        answer(sizes, segments())
        """, **SETTINGS, BUDDY_GROWTH="exact")
    assert outcome.value == [[20.5, 33], [20.5, 33]], "and split for others afterwards"


def test_where_sizes_differ_one_region_comes_to_serve_all_steps(run):
    outcome = run("""
        from program import *
        use_gpu()  # statistics wait for it
        for step in range(20):
            kept = [pinned(5 + step % 7), pinned(15 - step % 7), pinned(28)]
            kept.clear()
        answer(segments(), torch.cuda.host_memory_stats()["num_host_alloc"])
        """, **SETTINGS, BUDDY_GROWTH="exact")
    sizes, pins = outcome.value
    assert sizes == [52], "48 MiB and a twelfth"
    assert pins < 40, "of 60 requests of other sizes each step"


def test_a_request_above_a_segment_gets_what_it_asks_for(torch, pinned):
    size = (BLOCK_MB + 37) * MIB + 5
    tensor = pinned(size)
    segment = engine_segment(tensor)
    assert size <= segment["bytes"] <= size + 2 * MIB and segment["kind"] == "dedicated"
    tensor.fill_(9)
    assert bool((tensor == 9).all())


def test_such_a_region_is_kept_and_serves_what_nearly_fills_it(run):
    outcome = run("""
        from program import *
        sizes = []
        for mib in (160, 160, 150, 100, 155, 129.5):
            del_me = pinned(mib)
            del del_me
            sizes.append(segments())
        answer(*sizes)
        """, **SETTINGS)
    assert outcome.value == [
        [160],
        [160],
        [160],  # 6 % to spare
        [100, 160],  # 160 would be 60 % too much
        [100, 160],  # the best fit
        [100, 160],  # 160 is 24 % too much, and stock's region for it is as long
    ]


def test_a_kept_region_is_not_split_for_small_requests(run):
    outcome = run("""
        from program import *
        large = pinned(160)
        del large
        small = pinned(10)
        answer(segments())
        """, **SETTINGS)
    (region, kept) = outcome.value[0]
    assert kept == 160 and 10 <= region <= 20
