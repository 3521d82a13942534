"""Traces and plans that cannot be written or read: a program goes on, says why once, and leaves no half of a plan."""

import json

import plans
import pytest
from conftest import interpreter
from faults.programs import HEAD, SMALL
from measure import environment
from plugin import IS_PLUGIN
from start import start

pytestmark = [pytest.mark.skipif(not IS_PLUGIN, reason="programs are forked, which needs the plug-in"), pytest.mark.simulated("calls fail")]

# Faults are there until the process has ended. There are enough requests for a plan before that, if there are 300 turns.
PROGRAM = """
held = Held()
for turn in range({turns}):
    held.add(1 + turn % 3 / 8)
    if len(held.all) == 5:
        held.drop(2)
held.check()
print("done")
"""

ONCE = {"write": (28, "No space left on device"), "fsync": (5, "Input/output error"), "rename": (18, "Invalid cross-device link")}
CASES = [f"{name}:{call}" for name in ONCE for call in (range(1, 5) if name == "write" else (1, 2))]


def run(faults: str, turns: int = 300, **settings) -> list[str]:
    """What is said beyond the ordinary; the program has to end well."""
    variables = environment(**SMALL, **settings, PINBUDDY_SIM_FAULT_PLAN=faults)
    done = start(interpreter("fork"), HEAD + PROGRAM.format(turns=turns), variables, timeout=300, forked=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), (done.returncode, done.stderr)
    return [line for line in done.stderr.splitlines() if "warning" in line]


def error_of(case: str) -> tuple[str, str]:
    number, text = ONCE[case.split(":")[0]]
    return f"{case}={number}", text


def whole_lines(trace) -> list[dict]:
    return [json.loads(line) for line in trace.read_text().split("\n")[:-1]]


@pytest.mark.parametrize("case", [it for it in CASES if it.startswith("write")])
def test_a_trace_that_cannot_be_written_further(case, tmp_path):
    plan, text = error_of(case)
    said = run(plan, BUDDY_TRACE=str(trace := tmp_path / "trace"))
    assert len(said) == 1 and text in said[0] and str(trace) in said[0], said
    assert len(whole_lines(trace)) < 600


def test_a_trace_that_is_written_byte_by_byte_is_whole(tmp_path):
    # Few turns: a process that ends waits some seconds for its trace, and a system call for each byte is slow on a busy machine.
    assert run("write:1+=short", turns=100, BUDDY_TRACE=str(trace := tmp_path / "trace")) == []
    assert len(whole_lines(trace)) > 190


def test_a_trace_whose_file_cannot_be_opened(tmp_path):
    said = run(f"open({tmp_path / 'trace'}):1+=13", BUDDY_TRACE=str(trace := tmp_path / "trace"))
    assert len(said) == 1 and "Permission denied" in said[0], said
    assert not trace.exists()


@pytest.mark.parametrize("case", CASES)
def test_a_plan_that_cannot_be_written(case, tmp_path):
    """It is made twice: while the program runs, and at its end."""
    faults, text = error_of(case)
    said = run(faults, BUDDY_PLAN=str(plan := tmp_path / "plan.json"))
    assert said == [] or (len(said) == 1 and text in said[0] and str(plan) in said[0]), said
    assert {it.name for it in tmp_path.iterdir()} <= {plan.name}, "no half of one is left"
    assert run("", BUDDY_PLAN=str(plan)) == [] and plan.exists(), "what there is is a plan"


@pytest.mark.parametrize("name", [*ONCE, "open"])
def test_a_plan_that_can_never_be_written(name, tmp_path):
    """Nor can a line of it be said, where nothing can be written."""
    said = run(f"{name}:1+={ONCE.get(name, (13, ''))[0]}", BUDDY_PLAN=str(tmp_path / "plan.json"))
    assert not list(tmp_path.iterdir()) and (name == "write" or said), said


@pytest.mark.parametrize("faults", ["open({plan}):1+=13", "read:1+=5", "read:1+=short"])
def test_a_plan_that_cannot_be_read_is_said_and_kept(faults, tmp_path):
    plans.write(plan := tmp_path / "plan.json", [8 << 20], [[2 << 20, 0, 0]], [[0]], threshold=1 << 20)
    before = plan.read_bytes()
    # The kernel writes a file of its own anew for each read, be it of one byte: few turns, which look at few of them.
    said = run(faults.format(plan=plan), turns=20, BUDDY_PLAN=str(plan))
    not_used = [it for it in said if "is not used" in it and str(plan) in it]
    assert len(not_used) == (0 if faults.endswith("short") else 1), said
    assert plan.read_bytes() == before and list(tmp_path.iterdir()) == [plan]
