"""The programs of a sweep: short, each with another part of what an allocator does."""

HEAD = "from faults import steps\nfrom faults.steps import *\n"

SMALL = {"BUDDY_BLOCK_SIZE_MB": "16", "BUDDY_THRESHOLD_MB": "1", "BUDDY_PIN_THREADS": "2", "PINBUDDY_SIM_QUIET": "1"}
WATCHED = SMALL | {"PINBUDDY_SIM_HAZARDS": "1"}
SYNC = WATCHED | {"BUDDY_WARMUP": "sync", "BUDDY_BLOCK_COUNT": "1"}
# Events complete out of order.
LATE = SYNC | {"PINBUDDY_SIM_EVENT_LAG_MS": "20"}

SERVE = """
held = Held()
with step("large"): held.add(4)
with step("small"): held.add(0.25, 0.1, 0.5)
with step("longer than a block"): held.add(20)
with step("copy"):
    back = held.add(2).to("cuda", non_blocking=True).cpu()
    assert int(back.min()) == int(back.max())
with step("drop"): held.drop(4)
with step("again"): held.add(4)
with step("clear"): torch._C._host_emptyCache()
with step("after it"): held.add(5)
with step("small after it"):
    held.add(0.3)
    del held.all[-1]
with step("statistics"):
    torch.cuda.host_memory_stats()
    if steps.PLUGGED:
        import pinbuddy
        # Which asks the kernel where memory lies.
        pinbuddy.stats()
finish(held)
"""

STREAMS = """
held = Held()
one = two = None
with step("streams"): one, two = torch.cuda.Stream(), torch.cuda.Stream()
with step("in flight"):
    tensors = [pinned(size).fill_(3) for size in (2, 2, 0.25)]
    with stuck(one):
        for tensor in tensors:
            with torch.cuda.stream(one):
                arrived = tensor.to("cuda", non_blocking=True)
            with torch.cuda.stream(two):
                tensor.to("cuda", non_blocking=True)
        del tensor, tensors
        held.add(2, 2, 0.25)
        torch._C._host_emptyCache()
with step("synchronize"): torch.cuda.synchronize()
with step("clear"): torch._C._host_emptyCache()
with step("reuse"): held.add(2, 2, 0.25)
with step("content on the device"): assert int(arrived.cpu().max()) == 3
finish(held)
"""

BACKGROUND = """
held = Held()
with step("first"): held.add(3)
with step("warm"):
    # Which starts CUDA, as stock is asked to here.
    torch.cuda.init()
    if steps.PLUGGED:
        import pinbuddy
        pinbuddy.warm_up(wait=True)
with step("fill"): held.add(7, 7, 7, 7, 7, 7)
with step("drop"): held.drop(5)
with step("clear"): torch._C._host_emptyCache()
with step("again"): held.add(7, 7, 7, 7)
finish(held)
"""

CAPTURE = """
held = Held()
with step("outside"):
    source = held.add(2)
    target = torch.zeros(2 << 20, dtype=torch.uint8, device="cuda")
with step("capture"):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        target.copy_(source, non_blocking=True)
        inside = pinned(2)
with step("replay"):
    graph.replay()
    torch.cuda.synchronize()
with step("again"): held.add(2)
finish(held)
"""

CHILD = """
held = Held()
with step("before"): tensor = held.add(4)
seen = False
with step("child"):
    child = os.fork()
    if child == 0:
        try:
            # One element: the threads that reduce a tensor are not there in a child.
            seen = int(tensor[0]) == int(tensor[-1]) == 1
        finally:
            os._exit(0 if seen else 1)
    assert os.waitpid(child, 0)[1] == 0
with step("drop"):
    del tensor
    held.drop(1)
with step("again"): held.add(6)
finish(held)
"""

THREADS = """
held = [Held() for _ in range(4)]
def work(mine):
    stream = torch.cuda.Stream()
    for turn in range(12):
        tensor = mine.add(1 + turn % 3)
        with torch.cuda.stream(stream):
            tensor.to("cuda", non_blocking=True)
        del tensor
        if turn % 3 == 2:
            mine.drop(2)
with step("threads"), ThreadPoolExecutor(len(held)) as threads: list(threads.map(work, held))
with step("content of all"): [it.check() for it in held]
together = Held()
for it in held:
    together.all.extend(it.all)
    it.all.clear()
finish(together)
"""

# What the plan of `PLANNED` foresees: slots of these sizes, in MiB, beside one another in one region.
SLOTS = (4, 2, 2, 3)
PLANNED = """
held = Held()
with step("first"): held.add(4)
with step("slots"): held.add(2, 2, 3)
with step("unplanned"): held.add(6)
with step("copy"): assert int(held.add(4).to("cuda", non_blocking=True).cpu().max()) > 0
with step("drop"): held.drop(4)
with step("again"): held.add(2, 2, 3, 4)
with step("drop all"): held.drop(6)
with step("clear"): torch._C._host_emptyCache()
with step("after it"): held.add(2, 2, 3)
finish(held)
"""

# Device memory; `EXPANDABLE` before it has PyTorch map it piece by piece.
DEVICE = """
held = Held()
is_planned = steps.PLUGGED and os.path.exists(os.environ["BUDDY_DEVICE_PLAN"])
marks = [torch.full((4096,), mark, dtype=torch.uint8) for mark in range(4)]
def turns(count):
    for _ in range(count):
        live = []
        for mark, size in ((1, 3), (2, 5), (3, 4)):
            live.append((torch.empty(size << 20, dtype=torch.uint8, device="cuda"), mark))
            live[-1][0][:4096].copy_(marks[mark])
        while live:
            tensor, mark = live.pop(0)
            if not torch.equal(tensor[:4096].cpu(), marks[mark]):
                raise steps.Corrupt("somebody else has written to a block of device memory")
            del tensor
with step("first"): turns(1)
with step("pinned beside it"):
    back = held.add(2).to("cuda", non_blocking=True).cpu()
    assert int(back.min()) == int(back.max())
with step("loop"): turns(24)
with step("clear"): torch.cuda.empty_cache()
with step("again"): turns(2)
with step("unplanned"): torch.empty(30 << 20, dtype=torch.uint8, device="cuda")
with step("statistics"):
    torch.cuda.memory_stats()
    torch.cuda.memory_snapshot()
    if is_planned and not steps.statistics()["injected"]:
        import pinbuddy
        assert pinbuddy.stats()["device"][0]["hits"] > 0, "the plan serves nothing"
finish(held)
"""
EXPANDABLE = """
torch.cuda.memory._set_allocator_settings("expandable_segments:True")
"""
PLANNED_DEVICE = SYNC | {"BUDDY_DEVICE_PLAN": "{device plan}"}

# A machine with two nodes, of which the kernel has one.
TWO_NODES = SYNC | {"BUDDY_NUMA": "0", "PINBUDDY_SIM_FAULT_PLAN": "open(/sys/devices/system/node/has_memory):1+=<{nodes}"}

# Name: program, settings, whether the quick part has it. `{plan}` in a setting is the name of a plan with `SLOTS`, `{device plan}`
# that of a plan of the program's own device memory, `{trace}` that of a new file, and `{nodes}` that of a list of NUMA nodes. Faults
# in the settings are there beside the one that a run is about.
PROGRAMS = {
    "serve": (SERVE, SYNC, True),
    "serve, CUDA's memory": (SERVE, SYNC | {"BUDDY_BACKING": "cuda"}, False),
    "serve, on a node": (SERVE, TWO_NODES, False),
    "streams": (STREAMS, LATE, True),
    "background": (BACKGROUND, WATCHED, False),
    "capture": (CAPTURE, SYNC, False),
    "child": (CHILD, SYNC, False),
    "threads": (THREADS, LATE, False),
    "planned": (PLANNED, SYNC | {"BUDDY_PLAN": "{plan}"}, False),
    "traced": (STREAMS, SYNC | {"BUDDY_TRACE": "{trace}"}, False),
    "device": (DEVICE, PLANNED_DEVICE, False),
    "device, in pieces": (EXPANDABLE + DEVICE, PLANNED_DEVICE, False),
}
