"""The programs that tests of plans for device memory run. `TRAINING` looks whether its blocks overlap, and whether anybody else
writes to one; `STEPS` asks for a few blocks again and again. The simulator runs no kernels: blocks are written and read with
copies."""

import functools
from pathlib import Path

import plans
import pytest
import table

MIB = 1 << 20

TRAINING = """
    change = float(os.environ.get("CHANGE", 0))
    import bisect
    steps = os.environ.get("STEPS", "").split()
    draw = random.Random(7)
    differ = random.Random(int(os.environ.get("SEED", 1)))
    SIZES = [draw.randrange(MIB + 1, 6 * MIB) for _ in range(20)]
    PAGE = 4096
    marks = {mark: torch.full((PAGE,), mark, dtype=torch.uint8) for mark in range(1, 200)}
    mark = asked = 0
    # Where blocks begin, sorted, and where they end.
    begins, ends = [], {}

    class Block:
        def __init__(self, size):
            global mark, asked
            mark = mark % 199 + 1
            asked += 1
            self.mark = mark
            self.tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
            self.tensor[:PAGE].copy_(marks[mark])
            begin = self.tensor.data_ptr()
            at = bisect.bisect(begins, begin)
            assert at == 0 or ends[begins[at - 1]] <= begin, "it begins in another block"
            assert at == len(begins) or begin + size <= begins[at], "it ends in another block"
            begins.insert(at, begin)
            ends[begin] = begin + size

        def check(self):
            # Once, at its end.
            begin = self.tensor.data_ptr()
            begins.remove(begin)
            assert torch.equal(self.tensor[:PAGE].cpu(), marks[self.mark]), "somebody else has written to it"

    def ask(size):
        if differ.random() < change:
            size = differ.randrange(MIB + 1, 6 * MIB)
        return Block(size)

    def forward(scale=1.0):
        live = []
        for at, size in enumerate(SIZES):
            live.append(ask(int(size * scale)))
            if at % 3 == 2:
                live.pop(0).check()
        while live:
            live.pop().check()

    kept = [Block(3 * MIB), Block(5 * MIB)]
    reserved = []
    for step in range(12):
        forward()
        if step == 0:
            kept += [Block(4 * MIB) for _ in range(3)]
        if "mark" in steps:
            pinbuddy.iteration()
        if "clear" in steps and step % 3 == 1:
            torch.cuda.empty_cache()
        if "evaluation" in steps and step == 6:
            with torch.no_grad():
                forward(0.5)
                forward(0.5)
        if "shape" in steps and step == 6:
            forward(1.3)
        reserved.append(torch.cuda.memory_reserved())
    for block in kept:
        block.check()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    snapshot = torch.cuda.memory_snapshot()
    print(json.dumps({
        "device": pinbuddy.stats()["device"], "asked": asked, "reserved": max(reserved),
        "kept": sum(it.tensor.numel() for it in kept), "allocated": torch.cuda.memory_allocated(),
        "stats": {name: value for name, value in stats.items() if ".all." in name or ".large_pool." in name},
        "segments": sum(it["total_size"] for it in snapshot),
        "blocks": [[b["state"], b["size"], b["requested_size"]] for it in snapshot for b in it["blocks"]],
    }))
"""

# Thirty steps of these blocks, one after the other; `step()` is one more. And what tests ask of a plan, or of the program.
STEPS = """
    def rest():
        for mib in (20, 16):
            block(mib)
    def step(times=1):
        for _ in range(times):
            block(12)
            rest()
    step(30)
    # 12 and 20 and 16 MiB lie in one region of 20 MiB, one after the other.
    region = block(12).data_ptr()
    rest()
    def planned(tensor):
        return region <= tensor.data_ptr() < region + 20 * MIB
    def counts():
        return pinbuddy.stats()["device"][0]
    def stand():
        it = counts()
        return [torch.cuda.memory_reserved() >> 20, it["reserved_bytes"] >> 20, it["dropped"], it["given_back"]]
    def fails(mib):
        return refused(lambda: block(mib))
    def observed():
        # What is asked for in vain: an observer is told before the error is thrown.
        seen = []
        torch._C._cuda_attach_out_of_memory_observer(lambda device, asked, total, free: seen.append(asked))
        return seen
"""

# The same on two streams, of which the second is `side`.
TWO_STREAMS = STEPS.replace("""    step(30)
""", """    side = torch.cuda.Stream()
    for _ in range(30):
        step()
        with torch.cuda.stream(side):
            step()
""")


recorded = functools.partial(plans.recorded, variable="BUDDY_DEVICE_PLAN")
# Of programs behind `STEPS`.
answers = functools.partial(table.answers, how="with_plan", quiet=True)


def planned_runs(run, path: Path, program: str):
    """``planned(more)``: runs the program and ``more`` with the plan of the program."""
    recorded(run, path, program)
    return lambda more, **variables: run(program + more, BUDDY_DEVICE_PLAN=str(path), **variables)


@pytest.fixture
def twice(run, tmp_path):
    """``twice(program)``: the outcomes of a run whose device memory is recorded, and of the next one, with the plan of the first."""
    path = str(tmp_path / "device.json")
    return lambda program, **settings: [run(program, BUDDY_DEVICE_PLAN=path, **settings) for _ in range(2)]


@pytest.fixture
def with_two(run, tmp_path):
    """The same as ``with_plan``, on two streams."""
    return planned_runs(run, tmp_path / "two.json", TWO_STREAMS)


@pytest.fixture
def with_plan(run, tmp_path):
    """``with_plan(program)``: what comes of a program that begins as planned."""
    return planned_runs(run, tmp_path / "device.json", STEPS)
