"""examples/device_plan.py: recorded, then planned."""

import re
from pathlib import Path


EXAMPLE = Path(__file__).parents[2] / "examples" / "device_plan.py"
PROGRAM = f"""
import contextlib, io, json, runpy, sys
sys.argv = ["example", "--layers=3", "--width=512"]
said = io.StringIO()
with contextlib.redirect_stdout(said):
    runpy.run_path({str(EXAMPLE)!r}, run_name="__main__")
print(json.dumps(said.getvalue().splitlines()))
"""


def read(outcome):
    """What was requested, reserved and served."""
    figures, said = outcome.value
    requested, reserved = re.fullmatch(r"requested at most (\d+) MiB, reserved (\d+) MiB: [\d.]+% of it", figures).groups()
    return int(requested), int(reserved), said


def test_the_example_is_recorded_and_then_planned(run, tmp_path):
    plan = tmp_path / "device.json"
    stock = read(run(PROGRAM, "stock"))
    first = read(run(PROGRAM, BUDDY_DEVICE_PLAN=str(plan)))
    assert first == stock and first[2] == "no plan yet"
    requested, reserved, said = read(run(PROGRAM, BUDDY_DEVICE_PLAN=str(plan)))
    served, unknown = map(int, re.fullmatch(r"the plan served (\d+) requests, and knew nothing of (\d+)", said).groups())
    assert served > 500 and unknown == 0, said
    # Peaks are upper bounds, and MiB.
    assert stock[0] <= requested <= stock[0] + 2 and reserved < stock[1], (requested, reserved, stock)
