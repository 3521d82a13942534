"""Whose a plan is: another program's is never replaced unasked, and a run says at its start if it cannot be recorded."""

import json

import pytest
from conftest import needs

# Asks for SIZES (MiB) in each of STEPS steps; LIVE of them live beside one. Says on standard error when it begins.
PROGRAM = """
    import json, os, sys, torch, pinbuddy
    print("the program begins", file=sys.stderr, flush=True)
    torch.cuda.init()
    kind = dict(device="cuda") if os.environ.get("KIND") == "device" else dict(pin_memory=True)
    sizes = json.loads(os.environ["SIZES"])
    live = []
    for step in range(int(os.environ["STEPS"])):
        for mib in sizes:
            live.append(torch.empty(int(mib * (1 << 20)), dtype=torch.uint8, **kind))
            if len(live) > int(os.environ.get("LIVE", 2)):
                live.pop(0)
    stats = pinbuddy.stats()
    print(json.dumps([stats["plan"], stats["device"]]))
"""
OWN, OTHER = {"SIZES": "[5, 7, 6]"}, {"SIZES": "[29, 25.5, 31, 24.5]"}


def test_another_programs_plan_stays_and_one_line_says_what_to_do(run, plan):
    run(PROGRAM, BUDDY_PLAN=str(plan), STEPS="20", **OWN)
    text = plan.read_text()
    for update, then in [("0", "BUDDY_PLAN_UPDATE=1"), ("1", "It is made anew")]:
        assert plan.read_text() == text
        (line,) = run(PROGRAM, BUDDY_PLAN=str(plan), BUDDY_PLAN_UPDATE=update, STEPS="20", **OTHER).warnings
        assert "does not fit this program: of its first 60 requests" in line and then in line, line


@needs(11, "plans of device memory")
def test_a_device_plan_of_another_program_stays_and_says_so(run, plan):
    device = {"BUDDY_DEVICE_PLAN": str(plan), "KIND": "device"}
    run(PROGRAM, STEPS="100", LIVE="0", SIZES="[12, 20, 16]", **device)
    assert json.loads(text := plan.read_text())["plans"]
    # Of three that are live, there is room for one.
    (line,) = run(PROGRAM, STEPS="100", SIZES="[15, 17, 19, 18]", **device).warnings
    assert f"the plan in {plan} does not fit this program: it had a place for " in line and "remove the file" in line, line
    assert plan.read_text() == text
    assert run(PROGRAM, STEPS="100", LIVE="0", SIZES="[12, 20, 16]", **device).warnings == []


@pytest.mark.parametrize("variable, name, says", [
    ("BUDDY_PLAN", "file/run.plan", "Not a directory"),
    ("BUDDY_PLAN", "link", "symbolic link"),
    pytest.param("BUDDY_DEVICE_PLAN", "gone/run.plan", "is not there", marks=needs(11, "plans of device memory")),
])
def test_what_cannot_be_written_is_said_at_the_start(run, tmp_path, variable, name, says):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "gone" / "run.plan")
    kind = "device" if variable == "BUDDY_DEVICE_PLAN" else "pinned"
    outcome = run(PROGRAM, STEPS="100", KIND=kind, **OWN, **{variable: str(tmp_path / name)})
    (line,) = outcome.warnings
    assert says in line and str(tmp_path / name) in line
    assert outcome.stderr.index(line) < outcome.stderr.index("the program begins")
    assert (tmp_path / "link").is_symlink() and not (tmp_path / "gone").exists()
