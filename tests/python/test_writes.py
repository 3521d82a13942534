"""The library writes nowhere but where a variable or the program says: the simulator notes each of its calls that may."""

import re
from pathlib import Path

import pytest
from conftest import needs
from device_plans import TRAINING

# Pins, copies, frees, clears, and forks a child.
PROGRAM = """
def use():
    held = [pinned(size) for size in (8, 3, 8, 0.25, 40)]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        there = held[0].to("cuda", non_blocking=True)
    stream.synchronize()
    del held[:]
    torch._C._host_emptyCache()
for _ in range(3):
    use()
child = os.fork()
if not child:
    torch.empty(4 << 20, dtype=torch.uint8)
    os._exit(0)
os.waitpid(child, 0)
torch.cuda.host_memory_stats()
answer("done")
"""

SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_THRESHOLD_MB": "1"}


@pytest.fixture
def written(run, tmp_path):
    """``written(program, VARIABLE=value)``: runs it; the calls of the library's that may write, and their paths."""

    def written(program: str, **variables: str) -> set[tuple[str, str]]:
        log = tmp_path / "log"
        log.unlink(missing_ok=True)
        assert run(program, PINBUDDY_SIM_WRITES=str(log), **SETTINGS | variables).warnings == []
        lines = log.read_text().splitlines() if log.exists() else []
        return {tuple(line.split(" ", 1)) for line in lines}

    return written


def as_plans_are(path: Path, calls: set[tuple[str, str]]) -> bool:
    """Whether the plan was written: beside its place, under a name that is no other's, and moved there."""
    beside, others = {name for call, name in calls if call == "open"}, {call for call in calls if call[0] != "open"}
    names = re.compile(re.escape(str(path)) + r"\.[0-9a-f]{16}\.tmp")
    return bool(beside) and all(map(names.fullmatch, beside)) and others == {("rename", str(path))}


@pytest.mark.parametrize("variables", [
    {}, {"BUDDY_LIVE": "1"}, {"BUDDY_GUARD": "1"}, {"BUDDY_WARMUP": "sync", "BUDDY_BLOCK_COUNT": "2"},
    {"BUDDY_GROWTH": "exact", "BUDDY_FORK": "hide"}, {"BUDDY_DISABLE": "1"},
], ids=str)
def test_what_names_no_file_writes_none(written, variables):
    assert written(PROGRAM, **variables) == set()


@pytest.mark.parametrize("variable, more", [
    ("BUDDY_TRACE", ""), ("TRACE", "pinbuddy.trace.start(os.environ['TRACE']); use(); pinbuddy.trace.stop()")
])
def test_a_trace_is_written_and_nothing_else(written, tmp_path, variable, more):
    trace = tmp_path / "trace"
    assert written(PROGRAM + more, **{variable: str(trace)}, BUDDY_LIVE="1") == {("open", str(trace))}
    assert trace.stat().st_size > 0


@pytest.mark.parametrize("program, memory", [
    (PROGRAM, "BUDDY"), pytest.param(TRAINING, "BUDDY_DEVICE", marks=needs(11, "the calls of its device allocator that a plan stands in front of"))
], ids=["pinned", "device"])
def test_a_plan_is_written_once_and_then_read_and_a_trace_beside_it(written, tmp_path, program, memory):
    plan, trace = tmp_path / "plan", tmp_path / "trace"
    first = written(program, **{f"{memory}_PLAN": str(plan), f"{memory}_TRACE": str(trace)})
    assert ("open", str(trace)) in first
    assert as_plans_are(plan, first - {("open", str(trace))}), first
    assert written(program, **{f"{memory}_PLAN": str(plan)}) == set()
    assert {it.name for it in tmp_path.iterdir()} <= {"plan", "trace", "log"}
