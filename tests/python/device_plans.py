"""The programs that tests of plans for device memory run: `TRAINING`, and `STEPS`, which asks for a few blocks again and again."""

import functools
from pathlib import Path

import plans
import pytest
import table

MIB = plans.MIB

TRAINING = plans.TRAINING.replace("pin_memory=True", 'device="cuda"')

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
