"""PyTorch's own history of device memory shows planned blocks as it shows others, and the plan's regions as none."""

from conftest import needs
from device_plans import MIB, STEPS

HISTORY = """
    def begin(*what, **more):
        torch.cuda.memory._record_memory_history(*what, stacks="python", **more)
    def entries():
        return torch.cuda.memory._snapshot()["device_traces"][0]
    def short(entries):
        return [(it["action"], it["size"]) for it in entries if it["action"] not in ("snapshot", "segment_alloc")]
    def asked_by(frames):
        return [it["name"] for it in frames if it["name"] != "<module>"]
    def first_step():
        step()
"""


def test_a_planned_block_is_in_the_history_with_its_stack(with_plan, run):
    program = HISTORY + """
    begin()
    first_step()
    kept = block(12)
    print(json.dumps([[*it, asked_by(all["frames"])] for it, all in zip(short(entries()), entries())]))
    """
    planned, stock = with_plan(program).value, run(STEPS + program, BUDDY_DISABLE="1").value
    assert planned == stock
    assert planned[0] == ["alloc", 12 * MIB, ["block", "step", "first_step"]]
    assert [it[0] for it in planned[:3]] == ["alloc", "free_requested", "free_completed"]


def test_a_region_is_not_in_the_history_and_a_block_that_another_stream_used_is_completed_later(with_plan):
    """The region is taken while the history is recorded, and given back."""
    blocks, actions, at_once, later = with_plan(HISTORY + """
    torch.cuda.empty_cache()
    begin()
    step()
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    blocks, actions = short(entries()), [it["action"] for it in entries()]
    begin(clear_history=True)
    side = torch.cuda.Stream()
    it = block(12)
    with torch.cuda.stream(side):
        torch.cuda._sleep(3_000_000)
        it.record_stream(side)
    del it
    at_once = short(entries())
    torch.cuda.synchronize()
    other = block(20)
    answer(blocks, actions, at_once, short(entries()))
    """).value
    sizes = [12 * MIB, 20 * MIB, 16 * MIB]
    expected = [[what, size] for size in sizes for what in ("alloc", "free_requested", "free_completed")]
    assert blocks[:-1] == expected and blocks[-1] == ["segment_free", 20 * MIB]
    # The program's first one: the second snapshot does not show itself.
    assert actions.count("snapshot") == 1 and actions[0] == "segment_alloc", actions
    assert at_once == [["alloc", 12 * MIB], ["free_requested", 12 * MIB]]
    assert later == at_once + [["free_completed", 12 * MIB], ["alloc", 20 * MIB]]


def test_a_history_keeps_as_much_as_was_asked_for_and_a_block_says_for_life_who_asked_for_it(with_plan):
    few, off, again, skipped, *said = with_plan(HISTORY + """
    begin(max_entries=4)
    for _ in range(5):
        step()
    few = short(entries())
    begin(max_entries=1000, clear_history=True)
    step()
    torch.cuda.memory._record_memory_history(None)
    off = entries()
    begin()
    again = short(entries())
    begin(skip_actions=["free_requested"])
    step()
    skipped = short(entries())
    torch.cuda.memory._record_memory_history(None)
    def frames(tensor):
        blocks = [it for one in torch.cuda.memory._snapshot()["segments"] for it in one["blocks"]]
        (found,) = [it for it in blocks if it["address"] == tensor.data_ptr()]
        return asked_by(found.get("frames", []))
    def asks():
        return block(12)
    before = block(12)
    begin("state")
    said = [frames(before)]
    del before
    rest()
    kept = asks()
    said.append(frames(kept))
    torch.cuda.memory._record_memory_history(None)
    said.append(frames(kept))
    there = planned(kept)
    traceback = getattr(torch.cuda.memory, "_allocation_traceback", None)
    if traceback:
        assert asked_by(traceback(kept.data_ptr())) == said[-1]
    answer(few, off, again, skipped, there, said)
    """).value
    assert few == [["free_completed", 20 * MIB], *([what, 16 * MIB] for what in ("alloc", "free_requested", "free_completed"))]
    assert (off, again) == ([], [])
    assert [it[0] for it in skipped] == ["alloc", "free_completed"] * 3
    assert said == [True, [[], ["block", "asks"], ["block", "asks"]]]


def test_threads_that_ask_and_free_while_a_history_is_taken(with_plan):
    """Contexts are gathered with Python's lock; nobody waits for it under a lock of the plan."""
    assert with_plan(HISTORY + """
    begin(max_entries=5000)
    def work():
        for _ in range(300):
            block(1.5)
    together(*[work] * 4, lambda: [entries() for _ in range(10)])
    taken = [it for it in entries() if it["action"] in ("alloc", "free_completed")]
    live = set()
    for it in taken:
        if it["action"] == "alloc":
            assert it["addr"] not in live
            live.add(it["addr"])
        else:
            live.remove(it["addr"])
    print(json.dumps([len(taken), len(live)]))
    """).value == [2400, 0]


@needs(14, "annotations of blocks")
def test_a_planned_block_can_be_annotated(with_plan, run):
    program = HISTORY + """
    kept = block(12)
    torch.cuda.memory._annotate_tensor(kept, "before")
    begin()
    torch.cuda.memory._annotate_tensor(kept, "weights")
    print(json.dumps([[it["action"], it["size"], it["user_metadata"], it["addr"] == kept.data_ptr(), asked_by(it["frames"])]
                      for it in entries() if it["action"] == "annotate"]))
    """
    planned = with_plan(program).value
    assert planned == run(STEPS + program).value
    assert [it[:4] for it in planned] == [["annotate", 12 * MIB, "weights", True]]


def test_a_region_without_the_other_leaves_whole_blocks(run, tmp_path):
    """The second of two regions cannot be had: PyTorch serves, the first region's blocks are whole, and no region is in the totals."""
    program = """
    torch.cuda.init()
    kept = []
    def start():
        kept.extend(block(mib) for mib in (2, 30, 20))
    """
    path = str(tmp_path / "device.json")
    run(program + """
    start()
    for _ in range(30):
        [block(12), block(8), block(16)]
    """, BUDDY_DEVICE_PLAN=path)
    odd, live, dropped, allocated, large = run(program + """
    torch.cuda.memory._record_memory_history()
    start()
    hog = torch.cuda.caching_allocator_alloc(70 * MIB)
    beside = block(12)
    stats = torch.cuda.memory_stats()
    live, odd = set(), []
    for it in torch.cuda.memory._snapshot()["device_traces"][0]:
        if it["action"] == "alloc":
            live.add(it["addr"])
        elif it["action"] == "free_requested" and it["addr"] not in live:
            odd.append(it["size"])
        elif it["action"] == "free_completed":
            live.discard(it["addr"])
    print(json.dumps([odd, len(live), pinbuddy.stats()["device"][0]["dropped"],
                      stats["allocation.all.allocated"], stats["allocated_bytes.large_pool.allocated"] >> 20]))
    """, BUDDY_DEVICE_PLAN=path, PINBUDDY_SIM_DEVICE_MB="150").value
    # The hog, three that are kept, and a step's first.
    assert not dropped and (odd, live) == ([], 5)
    assert (allocated, large) == (5, 70 + 52 + 12)
