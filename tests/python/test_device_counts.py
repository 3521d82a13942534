"""Statistics that count a plan's regions must not show: peaks, failed tries, long blocks, and what is said of them in errors. They are the
same by every way to the allocator, and while the setting changes by which PyTorch rounds lengths up."""

import json

import pytest
from conftest import needs
from device_plans import MIB, STEPS

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


@needs(12, "functions of torch.accelerator for memory that ask c10's registry")
def test_the_accelerators_functions_answer_as_cudas_do(run, twice, tmp_path):
    # Asks by each way to PyTorch's allocator, and compares what they answer. Before CUDA is initialised neither may initialise it, nor fail.
    program = """
    for way in (torch.cuda, torch.accelerator):
        assert [way.memory_allocated(), way.memory_reserved(), way.empty_cache()] == [0, 0, None]
    assert not torch.cuda.is_initialized()
    for _ in range(30):
        for mib in (12, 20, 16):
            block(mib)
    it = block(12)
    # A storage asks the registry of allocators for its own.
    storage = torch.UntypedStorage(3 * MIB, device="cuda")
    storage.resize_(5 * MIB)
    cuda, accelerator = torch.cuda, torch.accelerator
    def figures(way):
        sizes = [way.memory_allocated(), way.max_memory_allocated(), way.memory_reserved()]
        return sizes, way.memory_stats()
    def check(what):
        (one, stats), (other, others) = figures(cuda), figures(accelerator)
        shared = stats.keys() & others.keys()
        assert one == other and len(shared) > 50, (what, one, other, shared)
        assert all(stats[name] == others[name] for name in shared), (what, stats, others)
        return one
    seen = [check("live")]
    del it, storage
    seen.append(check("freed"))
    accelerator.reset_peak_memory_stats()
    seen.append(check("peaks reset"))
    accelerator.reset_accumulated_memory_stats()
    seen.append(check("sums reset"))
    accelerator.empty_cache()
    seen.append(check("emptied"))
    free, total = accelerator.get_memory_info()
    assert (free, total) == cuda.mem_get_info()
    print(json.dumps(seen))
    """
    stock = run(program, "stock").value
    recorded, planned = (it.value for it in twice(program, BUDDY_DEVICE_TRACE=str(tmp_path / "{pid}.jsonl")))
    assert recorded == stock
    assert json.loads((tmp_path / "device.json").read_text())["plans"], "something is planned"
    # What is allocated is the same, as long as all of it are whole pages; emptying gives all of it back.
    assert [it[0] for it in planned] == [it[0] for it in stock]
    assert planned[-1] == stock[-1] == [0, 0, 0]


def test_a_planned_block_is_as_long_as_stocks_would_be(run, twice):
    # Changes roundup_power2_divisions while it runs, as programs may. Sizes of whole segments: PyTorch leaves a rest of up to 1 MiB with its block.
    program = """
    SETTINGS = ["", "roundup_power2_divisions:4", "roundup_power2_divisions:[16:8,32:2,>:1]", "roundup_power2_divisions:[64:16]"]
    SIZES = [int(mib * MIB) for mib in (1.5, 4, 9, 14, 18, 22, 34, 42, 64)]
    def live(stats, name):
        return stats[f"{name}.all.current"]
    seen = []
    for step in range(12):
        for text in SETTINGS:
            torch.cuda.memory._set_allocator_settings(text)
            kept = []
            for size in SIZES:
                kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
                stats = torch.cuda.memory_stats()
                names = ("allocated_bytes", "active_bytes", "requested_bytes", "allocation")
                seen.append([live(stats, name) for name in names])
            del kept
    print(json.dumps(seen))
    """
    stock = run(program, "stock").value
    assert len({it[0] for it in stock}) > len({it[2] for it in stock}), "some are rounded up"
    for planned in twice(program + "import pinbuddy; print(json.dumps(pinbuddy.stats()['device']))"):
        assert json.loads(planned.stdout.splitlines()[-2]) == stock
    (stream,) = planned.value
    assert stream["hits"] > 0.9 * len(stock), stream


def test_a_region_counts_as_long_as_pytorch_made_it(run, tmp_path):
    # The region is taken where a cached block is a little longer, and then again and again while the setting rounds it up.
    program = """
    cuda = torch.cuda
    def two():
        return block(42), block(34)
    seen, held, regions = [], [], []
    def note(freed=False):
        stats = cuda.memory_stats()
        names = ("allocation", "active", "allocated_bytes", "active_bytes", "requested_bytes")
        seen.append([stats[f"{name}.all.{when}"] for name in names for when in ("current", "allocated", "freed")])
        if not freed:
            # With nothing cached, what is reserved is active, or idle in a segment.
            idle = stats["inactive_split_bytes.all.current"]
            held.append([stats["reserved_bytes.all.current"], stats["active_bytes.all.current"] + idle])
        for pool in ("all", "small_pool", "large_pool"):
            idle = [stats[f"inactive_split_bytes.{pool}.{when}"] for when in ("current", "allocated", "freed")]
            assert idle[0] == idle[1] - idle[2], (pool, idle)
        if pinbuddy.stats()["device"]:
            regions.append(pinbuddy.stats()["device"][0]["reserved_bytes"])
    cuda.init()
    # These are no plan's. What is left of the segment of 78 MiB when the second is freed is 76.5 MiB.
    first = cuda.caching_allocator_alloc(MIB * 153 // 2)
    beside = cuda.caching_allocator_alloc(MIB * 6 // 5)
    cuda.caching_allocator_delete(first)
    kept = block(42)
    note()
    del kept
    note(freed=True)
    cuda.caching_allocator_delete(beside)
    for _ in range(30):
        two()
        block(60)
    if os.environ.get("STEPS_ALONE"):
        sys.exit(0)
    for text in ("roundup_power2_divisions:4", "", "roundup_power2_divisions:2", "roundup_power2_divisions:[64:2,>:1]"):
        cuda.empty_cache()
        note()
        cuda.memory._set_allocator_settings(text)
        kept = two()
        note()
        # It is given back under another setting.
        cuda.memory._set_allocator_settings("")
        del kept
        note(freed=True)
    print(json.dumps([seen, held, regions]))
    """
    path = str(tmp_path / "device.json")
    stock = run(program.replace("pinbuddy.stats()", "{'device': None}"), "stock").value
    assert run(program, BUDDY_DEVICE_PLAN=str(tmp_path / "other.json")).value == stock
    run(program, BUDDY_DEVICE_PLAN=path, STEPS_ALONE="1")
    seen, held, regions = run(program, BUDDY_DEVICE_PLAN=path).value
    assert seen == stock[0]
    assert all(reserved == whole for reserved, whole in held), held
    (stream,) = json.loads((tmp_path / "device.json").read_text())["plans"]
    # PyTorch has segments of whole 2 MiB.
    planned = sum(-(-it // (2 * MIB)) * 2 * MIB for it in stream["plan"]["regions"])
    assert max(regions) > min(it for it in regions if it) == planned, "some were longer than the plan has them"
