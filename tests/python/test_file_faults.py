"""Traces and plans that cannot be written: a program goes on, says why once, and leaves no half of a plan."""

import pytest
from conftest import interpreter
from faults.programs import HEAD, SMALL
from measure import environment
from plugin import IS_PLUGIN
from recorded import read
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


def run(faults: str, turns: int = 300, **settings) -> list[str]:
    """What is said beyond the ordinary; the program has to end well."""
    variables = environment(**SMALL, **settings, PINBUDDY_SIM_FAULT_PLAN=faults)
    done = start(interpreter("fork"), HEAD + PROGRAM.format(turns=turns), variables, timeout=300, forked=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), (done.returncode, done.stderr)
    return [line for line in done.stderr.splitlines() if "warning" in line]


def test_a_trace_that_cannot_be_written_further_and_one_that_is_written_byte_by_byte(tmp_path):
    said = run("write:2=28", BUDDY_TRACE=str(trace := tmp_path / "trace"))
    assert len(said) == 1 and "No space left on device" in said[0] and str(trace) in said[0], said
    assert len(read(trace, whole=False, waits=True)[1]) < 600
    # Few turns: a process that ends waits some seconds for its trace, and a system call for each byte is slow on a busy machine.
    assert run("write:1+=short", turns=100, BUDDY_TRACE=str(trace := tmp_path / "bytes")) == []
    assert len(read(trace, waits=True)[1]) > 190


def test_a_plan_that_cannot_be_written(tmp_path):
    """It is made twice: while the program runs, and at its end."""
    said = run("rename:1+=18", BUDDY_PLAN=str(plan := tmp_path / "plan.json"))
    assert said and all("Invalid cross-device link" in it and str(plan) in it for it in said), said
    assert not list(tmp_path.iterdir()), "no half of one is left"
