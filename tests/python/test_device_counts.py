"""Statistics that count a plan's regions must not show: peaks, failed tries, long blocks, and what is said of them in errors."""

import pytest
from conftest import needs
from device_plans import STEPS

PEAKS = """
    def peaks():
        stats = torch.cuda.memory_stats()
        return [stats[f"{it}_bytes.all.peak"] >> 20 for it in ("allocated", "active", "requested")]
"""


@pytest.mark.parametrize("drops", [False, True])
def test_peaks_are_no_less_than_what_was_shown_once_a_region_is_gone(with_plan, drops):
    assert with_plan(PEAKS + f"""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    # Little of the region.
    it = block(12)
    if {drops}:
        fails(95)
    del it
    torch.cuda.empty_cache()
    large = torch.cuda.caching_allocator_alloc(90 * MIB)
    shown = torch.cuda.memory_allocated() >> 20
    torch.cuda.caching_allocator_delete(large)
    print(json.dumps([shown, peaks(), counts()["dropped"]]))
    """, PINBUDDY_SIM_DEVICE_MB="100").value == [90, [90] * 3, drops]


def test_planned_blocks_that_are_small_to_pytorch_are_counted_where_they_lie(twice):
    """PyTorch counts blocks of up to 1 MiB with a pool of their own; a plan has places for them in its region."""
    runs = twice("""
    for _ in range(30):
        its = [block(mib) for mib in (0.5, 12, 0.25, 1, 0.0625)]
        del its
        block(20)
    kept = [block(mib) for mib in (0.5, 12, 0.25)]
    device = pinbuddy.stats()["device"]
    answer(device and device[0]["hits"], torch.cuda.memory_stats())
    """)
    (_, stock), (hits, planned) = (it.value for it in runs)
    assert hits == 30 * 6 + 3
    for name in ("allocation", "active", "allocated_bytes", "active_bytes", "requested_bytes"):
        for when in ("current", "allocated", "freed"):
            assert planned[f"{name}.all.{when}"] == stock[f"{name}.all.{when}"], (name, when)
    for pool in ("all", "small_pool", "large_pool"):
        reserved = planned[f"reserved_bytes.{pool}.current"]
        assert 0 <= planned[f"allocated_bytes.{pool}.current"] <= reserved, pool
    # Those that are small to PyTorch are in its pool, and those that are planned with the large ones, in whose memory they lie.
    assert planned["allocation.small_pool.allocated"] == 0 < stock["allocation.small_pool.allocated"]


COUNTS = """
    def tries():
        stats = torch.cuda.memory_stats()
        return [stats.get(f"num_{it}", 0) for it in ("ooms", "alloc_retries", "oom_rejections")]
    def lacks_memory(mib):
        return (fails(mib) or "").startswith("OutOfMemoryError")
"""


def test_nothing_gives_way_to_what_no_device_of_that_length_could_serve(with_plan, run):
    program = COUNTS + """
    seen = [[lacks_memory(asked), tries()] for asked in (1 << 41, 500)]
    answer(*seen)
    """
    outcome = with_plan(program + """
    answer(*seen, counts()["dropped"], counts()["given_back"])
    """, PINBUDDY_SIM_DEVICE_MB="64").quiet
    assert outcome.value == [*run(STEPS + program, PINBUDDY_SIM_DEVICE_MB="64").value, False, 0]


@needs(14, "throw_on_cudamalloc_oom")
def test_rejections_count_as_pytorchs_do_and_one_that_is_then_served_as_none(with_plan, run):
    conf = {"PYTORCH_ALLOC_CONF": "per_process_memory_fraction:1.0,throw_on_cudamalloc_oom:True"}
    program = COUNTS + """
    kept = block(12)
    print(json.dumps([lacks_memory(60), tries()]))
    """
    planned = with_plan(program, PINBUDDY_SIM_DEVICE_MB="64", **conf)
    assert planned.value == run(STEPS + program, PINBUDDY_SIM_DEVICE_MB="64", **conf).value
    (warning,) = planned.warnings
    assert "its plan is dropped" in warning
    assert with_plan(COUNTS + """
    beside = torch.cuda.caching_allocator_alloc(40 * MIB)
    # No plan serves these; the region does, once it is PyTorch's again.
    other = torch.cuda.caching_allocator_alloc(18 * MIB)
    print(json.dumps([tries(), counts()["given_back"]]))
    """, PINBUDDY_SIM_DEVICE_MB="64", **conf).value == [[0, 0, 0], 1]


def test_an_error_says_how_much_of_the_regions_is_idle(with_plan):
    says = "of what is allocated by PyTorch 8 MiB are idle in regions of this device's plan"
    for text in with_plan("""
    kept = block(12)
    answer(fails(500), fails(60))
    """, PINBUDDY_SIM_DEVICE_MB="64").value:
        assert text.startswith("OutOfMemoryError") and (f"pinbuddy: {says}" in text or f"; {says}" in text), text


def test_a_region_is_no_long_block(with_plan, run):
    program = """
    torch.cuda.empty_cache()
    torch.cuda.reset_accumulated_memory_stats()
    it = block(20)
    stats = torch.cuda.memory_stats()
    print(json.dumps([stats[f"oversize_allocations.{it}"] for it in ("current", "allocated", "freed")]))
    """
    for megabytes in (20, 21):
        conf = {"PYTORCH_ALLOC_CONF": f"max_split_size_mb:{megabytes}"}
        assert with_plan(program, **conf).value == run(STEPS + program, **conf).value


@pytest.mark.parametrize("seed", [0, *(pytest.param(it, marks=pytest.mark.slow("more random programs")) for it in range(1, 5))])
def test_peaks_of_bytes_are_what_there_was_at_most(with_plan, seed):
    """Of blocks that a plan serves and that it does not, of drawn lengths: the most is kept beside what is reported as the most."""
    differ, hits = with_plan(f"""
    rng = random.Random({seed})
    def stats(when):
        all = torch.cuda.memory_stats()
        return [all[f"{{it}}_bytes.{{pool}}.{{when}}"] for it in ("allocated", "active", "requested") for pool in ("all", "large_pool")]
    side, live = torch.cuda.Stream(), []
    def churn(count):
        most, differ = stats("current"), []
        for turn in range(count):
            if live and rng.random() < 0.5:
                it = live.pop(rng.randrange(len(live)))
                if rng.random() < 0.2 and it.numel() > MIB:
                    it.record_stream(side)
                del it
            else:
                live.append(block(rng.choice([12, 16, 20, 8, 6.5, 30, 45, 0.125, 0.01, 1.5])))
            most = [max(both) for both in zip(most, stats("current"))]
            if turn % 9 == 0 and stats("peak") != most:
                differ.append([turn, stats("peak"), most])
        return differ
    differ = []
    for turn in range(8):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        differ += churn(60)
        live.clear()
        if turn % 3 == 1:
            torch.cuda.empty_cache()
        step()
    hits = pinbuddy.stats()["device"]
    print(json.dumps([differ[:3], hits and hits[0]["hits"]]))
    """).value
    assert hits > 50
    assert differ == []


def test_peaks_that_nobody_reads_meanwhile_and_those_of_private_pools_are_stocks(with_plan, run):
    """Not at the same time: what PyTorch's allocator had at most, and what the plan had."""
    program = PEAKS + """
    seen = []
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        block(100)
        step()
        it = block(12)
        beside = block(50)
        del it
        rest()
        del beside
        seen.append([torch.cuda.max_memory_allocated() >> 20, torch.cuda.memory_stats()["active_bytes.large_pool.peak"] >> 20])
    # Also of what was there before a region was taken.
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    large = torch.cuda.caching_allocator_alloc(100 * MIB)
    torch.cuda.caching_allocator_delete(large)
    it = block(12)
    most = peaks()
    del it
    # Those of private pools stay, though a region goes.
    def of_pools():
        pools = torch.cuda.memory_stats_as_nested_dict().get("reserved_bytes_by_private_pools", {})
        return sorted(it["all"]["peak"] >> 20 for it in pools.values())
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        pooled = block(16)
    kept = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(kept):
        pooled = block(30)
    del pool, pooled
    torch.cuda.empty_cache()
    pools = [of_pools()]
    step()
    torch.cuda.empty_cache()
    pools.append(of_pools())
    torch.cuda.reset_peak_memory_stats()
    answer(seen, most, *pools, of_pools())
    """
    stock = run(STEPS + program).value
    assert stock[:2] == [[[100, 100]] * 3, [100] * 3]
    assert with_plan(program).value == stock
