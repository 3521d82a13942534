"""The engine's memory: each backing, each page size, each fallback, and how much of it there may be."""

import re
from pathlib import Path

import pytest
from table import answers

SMALL = {"BUDDY_BLOCK_SIZE_MB": "16", "BUDDY_BLOCK_COUNT": "2", "BUDDY_WARMUP": "sync"}
POOL = Path("/proc/sys/vm/nr_hugepages")

# For programs: the kernel's view of this process.
HEAD = """
def places():
    return [[it["backing"], it["page_bytes"]] for it in pinbuddy.stats()["segments"]]
def meminfo(name):
    return next(int(it.split()[1]) for it in open("/proc/meminfo") if it.startswith(name + ":"))
def copies():
    good = []
    for mib in (1.5, 5, 40):
        out = pinned(mib).random_(0, 256)
        back = pinned(mib).zero_()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            on_device = out.to("cuda", non_blocking=True)
            back.copy_(on_device, non_blocking=True)
        stream.synchronize()
        good.append(bool((out == back).all()) and out.is_pinned() and back.is_pinned())
    return good
"""


@pytest.mark.parametrize("settings, backing", [
    ({"BUDDY_BACKING": "pages"}, "pages"),
    ({"BUDDY_BACKING": "cuda"}, "cuda"),
    ({"BUDDY_BACKING": "pages", "BUDDY_HUGE_PAGES": "off"}, "pages"),
    ({"BUDDY_BACKING": "pages", "BUDDY_PIN_THREADS": "7"}, "pages"),
])
def test_copies_both_ways_are_right_with_each_backing(run, settings, backing):
    outcome = run(HEAD + """
good = copies()
seen = {it[0] for it in places()}
pinbuddy.empty_cache()
left = segments()
answer(good, sorted(seen), left, sim()["pins"] - sim()["unpins"])
""", **SMALL, **settings)
    assert outcome.value == [[True] * 3, [backing], [], 0]
    # Except warnings that requested huge pages were slow or unavailable at that moment.
    assert [it for it in outcome.warnings if "BUDDY_HUGE_PAGES: " not in it] == [], outcome.stderr


def test_what_the_kernel_says_about_each_page_size(run):
    # The kernel may make huge pages of small ones between two questions.
    program = HEAD + """
first, stands, summary = pinned(8), None, None
while stands != places():
    stands, summary = places(), pinbuddy.memory_summary()
# The table breaks lines between words.
answer(stands, " ".join(line.split("|")[-2].strip() for line in summary.splitlines()))
"""
    settings = SMALL | {"BUDDY_BACKING": "pages"}
    places, summary = run(program, **settings, BUDDY_HUGE_PAGES="off").value
    assert places == [["pages", 4096]] * 2 and "in pages of 4 KiB" in summary
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not enabled.exists() or "[never]" in enabled.read_text():
        pytest.skip("no transparent huge pages here")
    outcome = run(program, **settings, BUDDY_HUGE_PAGES="thp")
    places, summary = outcome.value
    small = places.count(["pages", 4096])
    assert small + places.count(["pages", 2 << 20]) == 2
    # A busy machine may be slow to give huge pages; the segment then has small ones, with a warning.
    assert ("in pages of 4 KiB" in summary) == (small > 0)
    assert ("in pages of 2 MiB" in summary) == (small < 2)
    assert small == 0 or any("BUDDY_HUGE_PAGES: " in it for it in outcome.warnings), outcome.stderr


test_what_pins = answers({
    # Pins that lock nothing take CUDA no time. The first region is ours, and timed.
    "without huge pages it is the quicker way": (HEAD + """
held = [pinned(17) for _ in range(4)]
filled = all(bool((it.random_(1, 9) > 0).all()) for it in held)
backings = sorted(it[0] for it in places())
del held
pinbuddy.empty_cache()
answer(backings.count("pages"), backings.count("cuda") > 0, filled, segments(), sim()["pins"] - sim()["unpins"])
""", [1, True, True, [], 0], {"BUDDY_WARMUP": "off", "BUDDY_HUGE_PAGES": "off", "BUDDY_PIN_THREADS": "1", "PINBUDDY_SIM_LOCK": 0}),
    "where registering is not permitted it is CUDA": (HEAD + """
on_device = torch.zeros(1000, device="cuda")
tensors = [pinned(20).fill_(i) for i in range(2)]
on_device += 1
torch.cuda.synchronize()
whole = all(bool((it == i).all()) for i, it in enumerate(tensors))
answer([it["backing"] for it in pinbuddy.stats()["segments"]], whole, sim()["host_registers"])
""", [["cuda"] * 2, True, 0], {"BUDDY_BLOCK_SIZE_MB": "24", "PINBUDDY_SIM_REGISTER": 0},
        ["could not register 24 MiB", "not permitted", "BUDDY_BACKING=cuda"]),
}, quiet=True, **SMALL)


@pytest.mark.timing
def test_a_region_counts_once_with_all_the_time_that_it_took(run):
    allocs, timed, registers, share, frees, times, share_of_free = run(HEAD + """
torch.cuda.init()
taken = seconds(lambda: pinbuddy.warm_up(wait=True))
before = torch.cuda.host_memory_stats()
freed = seconds(pinbuddy.empty_cache)
after = torch.cuda.host_memory_stats()
answer(before["num_host_alloc"], before["host_alloc_time.count"], sim()["host_registers"],
       before["host_alloc_time.total"] / 1e6 / taken,
       after["num_host_free"], after["host_free_time.count"], after["host_free_time.total"] / 1e6 / freed)
""", BUDDY_BLOCK_SIZE_MB=256, BUDDY_BLOCK_COUNT=2).value
    assert (allocs, timed, registers, frees, times) == (2, 2, 2, 2, 2)
    assert 0.7 < share <= 1.01 and 0.5 < share_of_free <= 1.01


def test_a_control_group_smaller_than_a_block(run):
    """Its limit bounds the budget, so that the warm-up does not kill the program."""
    root, limit, members = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "tasks"
    if not root.exists():
        root, limit, members = root.parent, "memory.max", "cgroup.procs"
    group = root / "pinbuddy-test"
    try:
        group.mkdir(exist_ok=True)
        (group / limit).write_text(str(1 << 30))
    except OSError as error:
        pytest.skip(f"no memory group can be made here: {error}")
    try:
        outcome = run(HEAD + f"""
open("{group}/{members}", "w").write(str(os.getpid()))
tensor = pinned(64).fill_(3)
pinbuddy.warm_up(wait=True)
answer(segments(), pinbuddy.stats()["budget"]["why"], bool((tensor == 3).all()))
os._exit(0)
""", BUDDY_BLOCK_SIZE_MB=1024)
    finally:
        group.rmdir()
    sizes, why, whole = outcome.value
    assert sizes == [64] and "control group" in why and whole
    (warning,) = outcome.warnings
    assert "0 of 8 blocks of 1 GiB" in warning


@pytest.mark.parametrize(("memory", "part"), [("", 2), ("integrated", 4), ("coherent", 4)])
def test_where_the_gpu_shares_the_memory_the_budget_is_smaller(run, memory, part):
    outcome = run("""
first = pinned(8)
pinbuddy.warm_up(wait=True)
answer(pinbuddy.stats()["budget"], pinbuddy.stats()["engine"]["pinned_bytes"]["peak"])
""", BUDDY_BLOCK_SIZE_MB=32, BUDDY_BLOCK_COUNT=2, PINBUDDY_SIM_MEMORY=memory)
    budget, peak = outcome.value
    assert 0 < peak <= budget["bytes"] and not outcome.warnings
    why = budget["why"]
    size = float(re.search(r"([0-9.]+) GiB", why)[1])
    found, most = budget["bytes"] / 2**30, size / part
    assert found < most + 0.1, why
    # Other tests may pin now; what they share or hold is not ours.
    if "shared by" not in why and ", less" not in why:
        assert found > most - 0.1, why
    assert why.startswith("a quarter of the" if part == 4 else "half of the")
    assert why.endswith(", as the GPU uses that memory, too") == (part == 4)


@pytest.fixture
def pool():
    """Reserves `count` huge pages of 2 MiB for one test."""
    before = int(POOL.read_text()) if POOL.exists() else None
    try:
        POOL.write_text(str((before or 0) + 48))
        if int(POOL.read_text()) < 48:
            raise OSError("the system has none to give")
    except OSError as error:
        if before is not None:
            POOL.write_text(str(before))
        pytest.skip(f"no huge pages can be set aside: {error}")
    yield 48
    POOL.write_text(str(before))


# Alone, since other programs may take pages from the pool.
@pytest.mark.timing(again=False)
def test_huge_pages_go_back_to_the_pool(run, pool):
    outcome = run(HEAD + """
free = [meminfo("HugePages_Free")]
torch.cuda.init()
pinbuddy.warm_up(wait=True)
free.append(meminfo("HugePages_Free"))
good = copies()
at = places()
pinbuddy.empty_cache()
free.append(meminfo("HugePages_Free"))
answer(free, all(good), at[:2], segments())
""", **SMALL | {"BUDDY_BLOCK_SIZE_MB": "32"}, BUDDY_HUGE_PAGES="2M", BUDDY_GROWTH="exact")
    free, good, places, left = outcome.value
    # Other programs of this machine may use the pool, too.
    assert 32 <= free[0] <= pool
    assert free == [free[0], free[0] - 32, free[0]] and good and left == []
    assert places == [["pages", 2 << 20]] * 2
    # The third region, of 40 MiB, got 16 of 20 pages. Slow pages are said, too, and not meant.
    assert len([it for it in outcome.warnings if "instead" in it]) == 1, outcome.stderr
