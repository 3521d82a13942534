"""PyTorch's own history of device memory, its profiler and its snapshots show planned blocks as they show others, and the plan's regions
as none: as much came as went, and how much was asked for."""

from device_plans import MIB, STEPS, answers, recorded
from release import from_minor

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


def test_a_planned_block_is_in_the_history_with_its_stack_and_can_be_annotated(with_plan, run):
    program = HISTORY + """
    begin()
    first_step()
    kept = block(12)
    seen = [[*it, asked_by(all["frames"])] for it, all in zip(short(entries()), entries())]
    annotated = []
    if annotate := getattr(torch.cuda.memory, "_annotate_tensor", None):
        torch.cuda.memory._record_memory_history(None)
        annotate(kept, "before")
        begin()
        annotate(kept, "weights")
        annotated = [[it["action"], it["size"], it["user_metadata"], it["addr"] == kept.data_ptr(), asked_by(it["frames"])]
                     for it in entries() if it["action"] == "annotate"]
    answer(seen, annotated)
    """
    planned, stock = with_plan(program).value, run(STEPS + program, BUDDY_DISABLE="1").value
    assert planned == stock
    seen, annotated = planned
    assert seen[0] == ["alloc", 12 * MIB, ["block", "step", "first_step"]]
    assert [it[0] for it in seen[:3]] == ["alloc", "free_requested", "free_completed"]
    assert [it[:4] for it in annotated] == from_minor(14) * [["annotate", 12 * MIB, "weights", True]]


LIFE = ("alloc", "free_requested", "free_completed")

test_the_history = answers({
    # The region is taken while the history is recorded, and given back.
    "has no region and a block that another stream used is completed later": (HISTORY + """
    torch.cuda.empty_cache()
    begin()
    step()
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    # The second snapshot does not show itself.
    blocks, (first, *actions) = short(entries()), [it["action"] for it in entries()]
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
    answer(blocks, first, actions.count("snapshot"), at_once, short(entries())[2:])
    """, [
        [*([what, mib * MIB] for mib in (12, 20, 16) for what in LIFE), ["segment_free", 20 * MIB]], "segment_alloc", 1,
        [["alloc", 12 * MIB], ["free_requested", 12 * MIB]], [["free_completed", 12 * MIB], ["alloc", 20 * MIB]],
    ]),
    "keeps as much as was asked for and a block says for life who asked for it": (HISTORY + """
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
    skipped = [action for action, _ in short(entries())]
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
    """, [
        [["free_completed", 20 * MIB], *([what, 16 * MIB] for what in LIFE)], [], [], ["alloc", "free_completed"] * 3,
        True, [[], ["block", "asks"], ["block", "asks"]],
    ]),
    # Contexts are gathered with Python's lock; nobody waits for it under a lock of the plan.
    "is taken while threads ask and free": (HISTORY + """
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
    answer(len(taken), len(live))
    """, [2400, 0]),
})


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


SIZED = """
    SIZES = [3 * MIB + 1000, 5 * MIB + 512, 4 * MIB]
    def step():
        return [torch.empty(size, dtype=torch.uint8, device="cuda") for size in SIZES]
    for _ in range(30):
        step()
"""

PROFILED = SIZED + """
    # The region is given back before, and comes and goes while the profiler listens.
    from torch.profiler import ProfilerActivity, profile
    del torch._inductor  # The profiler needs it.
    torch.cuda.empty_cache()
    def changes(act):
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
            act()
        events = prof.profiler.kineto_results.events()
        device = torch.autograd.DeviceType.CUDA
        return [it.nbytes() for it in events if it.name() == "[memory]" and it.device_type() == device]
    kept = []
    came = changes(lambda: kept.extend(step()))
    went = changes(kept.clear)
    both = changes(lambda: (step(), torch.cuda.empty_cache()))
    # What a snapshot shows.
    kept, side = step(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(400_000_000)
    kept[1].record_stream(side)
    del kept[1]
    segments = torch.cuda.memory_snapshot()
    busy = not side.query()
    blocks = [(b["state"], b["requested_size"]) for it in segments for b in it["blocks"] if b["state"] != "inactive"]
    seen = [busy, sorted(blocks), sum(it["requested_size"] for it in segments), torch.cuda.memory_stats()["requested_bytes.all.current"]]
    torch.cuda.synchronize()
    kept.clear()
    # CUDA's sanitizer in torch listens to the tracer: an address that comes twice confuses it.
    import torch.cuda._gpu_trace as gpu_trace
    torch.cuda.empty_cache()
    live, wrong, told = set(), [], []
    def begun(address):
        told.append(1)
        wrong.extend([address] if address in live else [])
        live.add(address)
    def ended(address):
        wrong.extend([] if address in live else [address])
        live.discard(address)
    gpu_trace.register_callback_for_memory_allocation(begun)
    gpu_trace.register_callback_for_memory_deallocation(ended)
    torch._C._activate_gpu_trace()
    for _ in range(2):
        step()
        torch.cuda.empty_cache()
    kept = step()
    answer([came, went, both], seen, len(told) >= 9, len(live), wrong)
"""


def test_profilers_snapshots_and_tracers_are_told_of_blocks_and_of_no_region(run, plan):
    recorded(run, plan, SIZED)
    stock = run(PROFILED, "stock").value
    planned = run(PROFILED, BUDDY_DEVICE_PLAN=str(plan)).value
    asked = 12 * MIB + 1512
    for came, went, both in (stock[0], planned[0]):
        assert asked <= sum(came) <= asked + 3 * MIB, (stock, planned)
        assert sum(went) == -sum(came) and sum(both) == 0, (stock, planned)
        assert max(went) < 0, (stock, planned)
    assert sorted(it for it in planned[0][0] if 0 < it < 6 * MIB) == [3 * MIB + 1024, 4 * MIB, 5 * MIB + 512], planned
    assert planned[1:] == stock[1:] and planned[1][0], (planned, stock)
    live, pending = "active_allocated", "active_pending_free"
    assert planned[1][1] == [[live, 3 * MIB + 1000], [live, 4 * MIB], [pending, 5 * MIB + 512]], planned
    assert planned[2:] == [True, 3, []], planned
