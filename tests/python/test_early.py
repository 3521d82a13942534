"""With a plan, memory is pinned once CUDA is initialised, before the first request."""

import plans
import pytest

SETTINGS = {"BUDDY_THRESHOLD_MB": "1"}

# Two blocks that are live at once, and then what the plan has pinned before anything was asked for.
RECORDED = """
import torch
for _ in range(12):
    live = [torch.empty(size << 20, dtype=torch.uint8, pin_memory=True) for size in SIZES]
    del live
print(0)
"""
REPEAT = RECORDED.replace("SIZES", "(8, 24)")
VARY = RECORDED.replace("SIZES", "(8 + _, 24 - _ * _ % 7)")
# It has a context then.
USES = "there = torch.zeros(8, device='cuda')"
LOOKS = """
import json, time, torch, pinbuddy

def pinned():
    return pinbuddy.stats()["engine"]["pinned_bytes"]["current"]

before = pinned()
BEGIN
late = time.monotonic() + SECONDS
while pinned() == 0 and time.monotonic() < late:
    time.sleep(0.01)
early = pinned()
block = torch.empty(24 << 20, dtype=torch.uint8, pin_memory=True)
stats = pinbuddy.stats()
print(json.dumps([before, early, stats["engine"]["pinned_bytes"]["current"]]))
"""


@pytest.fixture
def looks(run, tmp_path):
    """``looks(begin, seconds, recorded, **variables)``: what is pinned before CUDA is up, some time after it, and after
    a request, in a run with the plan of `recorded`."""

    def looks(begin, seconds, recorded=REPEAT, **variables):
        plan = tmp_path / "run.plan"
        plans.recorded(run, plan, recorded, **SETTINGS)
        program = LOOKS.replace("BEGIN", begin).replace("SECONDS", str(seconds))
        settings = {"BUDDY_PLAN": str(plan), **SETTINGS, **variables}
        outcome = run(program, **{name: value for name, value in settings.items() if value is not None})
        assert outcome.warnings == []
        return outcome.value

    return looks


@pytest.mark.parametrize("recorded", [pytest.param(REPEAT, marks=pytest.mark.release), VARY], ids=["slots", "amounts"])
def test_a_plan_is_pinned_before_the_first_request(looks, recorded):
    before, early, after = looks(USES, 60, recorded)
    assert before == 0
    assert early >= 32 << 20 and after == early


@pytest.mark.parametrize(
    "begin, variables", [("torch.cuda.init()", {}), (USES, {"BUDDY_PLAN": None}), (USES, {"BUDDY_DISABLE": "1"})]
)
def test_nothing_is_pinned_early_without_a_plan_a_warm_up_and_a_device_in_use(looks, begin, variables):
    before, early, after = looks(begin, 0.5, **variables)
    assert (before, early) == (0, 0) and (after > 0) == ("BUDDY_DISABLE" not in variables)


def test_a_program_that_ends_at_once_ends_well(looks, run, tmp_path):
    looks("", 0)
    for ends in ("", "import os; os._exit(0)", "raise SystemExit(0)"):
        run(f"import torch\n{USES}\n{ends}", BUDDY_PLAN=str(tmp_path / "run.plan"), **SETTINGS)


def test_it_is_pinned_for_the_device_that_the_program_uses(run, looks, tmp_path):
    """As each rank of a launcher that shows all GPUs to all: on which node memory lies depends on it."""
    looks("", 0)
    outcome = run("""
        from program import *
        import pinbuddy, subprocess
        torch.cuda.set_device(1)
        there = torch.zeros(8, device="cuda")
        until(lambda: pinbuddy.stats()["engine"]["pinned_bytes"]["current"] > 0)

        def row():
            command = [sys.executable, "-m", "pinbuddy", "top", "--json", str(os.getpid())]
            environment = {name: value for name, value in os.environ.items() if not name.startswith("BUDDY")}
            return json.loads(subprocess.check_output(command, env=environment))["processes"][0]

        until(lambda: row().get("pinned_bytes"))
        answer(row()["device"])
        """, BUDDY_PLAN=str(tmp_path / "run.plan"), BUDDY_LIVE="1", PINBUDDY_SIM_DEVICES="2", **SETTINGS)
    assert outcome.value == [1]
