"""The parts that have programs of their own: what tests/python measures, and trainings."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from harness import Machine, printed
from results import Failed, Results, at_least, at_most, table

ROOT = Path(__file__).parent.parent.parent
PYTHON = ROOT / "tests/python"
sys.path.append(str(PYTHON))
import measure  # noqa: E402


@contextlib.contextmanager
def in_python_tests(machine: Machine):
    """Functions of tests/python start their programs with this process's variables."""
    try:
        with patch.dict(os.environ, {**machine.environ, "PYTHONDONTWRITEBYTECODE": "1"}, clear=True):
            yield machine.python(False), machine.python(True)
    except (RuntimeError, OSError, subprocess.CalledProcessError) as why:
        raise Failed(f"{why}\n  to do     pinbuddy doctor says what this machine has") from None


def overhead(machine: Machine, results: Results) -> None:
    """Requests with the engine off, and imports."""
    with in_python_tests(machine) as pythons:
        disabled = measure.compare_pairs(*map(measure.torch_folder, pythons), 64 << 10, BUDDY_DISABLE=1)
        found = {"disabled_64KiB": disabled, "import": measure.compare_imports(*pythons), "loading": measure.compare_loading(*pythons)}
    results.details["overhead"] = found
    results.value(("import_ms_delta",), found["import"]["delta_ms"], at_most(20.0))
    print(table("allocate + free, ns", ["stock", "fork", "ratio"],
                [("disabled_64KiB", [disabled[it] for it in ("stock_ns", "fork_ns", "ratio")])]))
    rows = [(name, [found[name]["stock_ms"], found[name]["delta_ms"]]) for name in ("import", "loading")]
    print(table("ms", ["stock", "fork, more"], rows))


TRAININGS = ["gpt2", "gpt2-for-each", "gpt2-recompute", "gpt2-accumulated", "resnet50", "resnet50-large"]
EFFICIENCY, OFF = 0.99, 1.0  # the least of what a plan reserves that is in use at most; percent that the model may be off
PATIENCE = "20"  # seconds in which a plan is looked for
DEVICE_MB = "80000"  # of which none of them needs so much


def trainings(machine: Machine, results: Results) -> None:
    """Device memory of real trainings: what PyTorch reserved, what its model says, and what a plan reserves. Sizes repeat from
    run to run to the byte, so there are no rounds."""
    rows, details = [], {}
    for name in TRAININGS:
        machine.say(name)
        with machine.folder() as folder:
            efficiency, details[name] = _training(machine, name, folder, results)
        for way, value in efficiency.items():
            target = at_least(EFFICIENCY) if way in ("plan", "run") else None
            results.value(("training_efficiency", name, way), value, target)
        rows.append((name, [100 * it for it in efficiency.values()]))
    columns = ["stock", "expandable", "plan", "plan + exp.", "a run with a plan"]
    print(table("device memory of trainings, most requested at once over most reserved, %", columns, rows))
    results.details["trainings"] = details


def _training(machine: Machine, name: str, folder: Path, results: Results) -> tuple[dict, dict]:
    """With the official wheel, with and without expandable segments, with a snapshot of its whole history; then with the fork,
    recorded once and planned once."""
    efficiency = {}
    for way in ("stock", "expandable"):
        snapshot = folder / f"{way}.pickle"
        conf = {"PYTORCH_CUDA_ALLOC_CONF": f"expandable_segments:{way == 'expandable'}"}
        peak, end, requested = _train(machine, name, False, conf, snapshot)
        efficiency[way] = requested / peak
        # Cargo and what it compiles never run under the simulator.
        model = printed(["cargo", "run", "--quiet", "--locked", "--package", "pinbuddy-replay", "--example", "device", "--",
                         snapshot, way], os.environ, cwd=ROOT)
        if [model["peak"][1], model["end"][1]] != [peak, end]:
            raise Failed(f"the history of {name} is not whole: {model}, and PyTorch says {peak} and {end}")
        off = max(100 * abs(ours - real) / real for ours, real in (model["peak"], model["end"]))
        results.value(("model_off_percent", name, way), off, at_most(OFF))
        if way == "stock":
            stock, acts = requested, model["acts"]
    plan = printed([machine.fork / "bin/pinbuddy", "plan", folder / "stock.pickle", "--device", "0", "--torch", "2.15.0",
                    "--threads", "1", "--time-limit", PATIENCE, "--json"], machine.environ)
    for way, behind in (("plan", "stock"), ("plan_expandable", "expandable")):
        if not (made := plan[f"plan_before_{behind}"]):
            raise Failed(f"no plan of {name} was made")
        efficiency[way] = made["efficiency"]
    ours = {"BUDDY_DEVICE_PLAN": str(folder / "device.plan")}
    _train(machine, name, True, ours)
    if not (folder / "device.plan").is_file():
        raise Failed(f"the first run of {name} wrote no plan")
    efficiency["run"] = stock / _train(machine, name, True, ours)[0]
    return efficiency, {"requested": stock, "acts": acts}


def _train(machine: Machine, name: str, fork: bool, more: dict, snapshot: Path | None = None) -> list:
    """The most that was reserved, what was at the end, and the most that was requested at once."""
    command = [machine.python(fork), ROOT / "tests/programs/device_trainings.py", name, *([snapshot] if snapshot else [])]
    return printed(command, {**machine.environ, **more, "PINBUDDY_SIM_DEVICE_MB": DEVICE_MB})
