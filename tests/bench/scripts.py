"""The parts that have programs of their own: those of tests/python, trainings, and the build of a wheel."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from harness import Machine, output
from results import Failed, Results, at_least, at_most, table

ROOT = Path(__file__).parent.parent.parent
PYTHON = ROOT / "tests/python"
sys.path.append(str(PYTHON))
import cold_start  # noqa: E402
import measure  # noqa: E402
import production  # noqa: E402


@contextlib.contextmanager
def in_python_tests(machine: Machine):
    """Functions of tests/python start their programs with this process's variables."""
    own = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update({**machine.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        yield machine.python(False), machine.python(True)
    except (RuntimeError, OSError, subprocess.CalledProcessError) as why:
        raise Failed(f"{why}\n  to do     pinbuddy doctor says what this machine has") from None
    finally:
        os.environ.clear()
        os.environ.update(own)


def warm_up(machine: Machine, results: Results) -> None:
    """A cold start by backing and page size, and a program beside a warm-up."""
    with in_python_tests(machine) as (_, fork):
        found = results.details["warm_up"] = {"warm_up": cold_start.warm_up(fork), "beside": cold_start.beside(fork)}

    def rounds(part: str, pages: str) -> list | None:
        return found[part].get(f"pages, {pages}", {}).get("rounds")

    thp = rounds("warm_up", "transparent")
    for name, own, target in [
        ("thp", thp, at_least(3.0)),
        ("hugetlb", rounds("warm_up", "2 MiB"), at_least(median(thp)) if thp else None),
    ]:
        if own:
            results.rounds(("warmup_speedup", name), own, target)
        else:
            results.skipped[f"warmup_speedup {name}"] = "no such pages here"
    if beside := rounds("beside", "transparent"):
        results.rounds(("beside_warm_up",), beside, at_most(1.1))
    rows = [(way, [it["seconds"], it["times_faster"], ", ".join(map(str, it["pages"]))]) for way, it in found["warm_up"].items()]
    print(table("warm-up of 4 GiB", ["seconds", "times faster", "pages"], rows))
    rows = [(way, [it["beside_ns"], it["alone_ns"], it["ratio"]]) for way, it in found["beside"].items()]
    print(table("allocate + free, ns", ["beside", "alone", "ratio"], rows))


def overhead(machine: Machine, results: Results) -> None:
    """Requests with the engine off, and imports."""
    with in_python_tests(machine) as pythons:
        found = results.details["overhead"] = measure.overhead(*pythons)
    results.value(("import_ms_delta",), found["import"]["delta_ms"], at_most(20.0))
    rows = [(name, [it["stock_ns"], it["fork_ns"], it["ratio"]]) for name, it in found.items() if "ratio" in it]
    print(table("allocate + free, ns", ["stock", "fork", "ratio"], rows))
    rows = [(name, [found[name]["stock_ms"], found[name]["delta_ms"]]) for name in ("import", "loading")]
    print(table("ms", ["stock", "fork, more"], rows))


def of_production(machine: Machine, results: Results) -> None:
    """Requirements of a production allocator."""
    with in_python_tests(machine) as pythons:
        found = {name: getattr(production, name)(*pythons) for name in ("clear", "fit", "step", "first")}
    results.details["production"] = found
    rows = [(way, [it["before"] / 1e9, it["after"] / 1e9, it["after"] / it["live"]]) for way, it in found["clear"].items()]
    print(table("pinned, GB", ["before", "after", "after / live"], rows))
    print(table("pinned over requested", found["fit"]["4 to 900 MiB"], [(name, by.values()) for name, by in found["fit"].items()]))
    print(table("calls to the driver, step", range(1, 6), found["step"].items()))
    print(table("the first 64 MiB", ["stock, s", "fork, s", "ratio"], [("", [found["first"][it] for it in ("stock", "fork", "ratio")])]))


TRAININGS = ["gpt2", "gpt2-for-each", "gpt2-recompute", "gpt2-accumulated", "resnet50", "resnet50-large"]
EFFICIENCY, OFF = 0.99, 1.0  # the least of what a plan reserves that is in use at most; percent that the model may be off
PATIENCE = "20"  # seconds in which a plan is looked for
DEVICE_GB = "80"  # of which none of them needs so much


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
        model = _json(machine, ["cargo", "run", "--quiet", "--locked", "--package", "pinbuddy-replay", "--example", "device", "--",
                                snapshot, way], cwd=ROOT)
        if [model["peak"][1], model["end"][1]] != [peak, end]:
            raise Failed(f"the history of {name} is not whole: {model}, and PyTorch says {peak} and {end}")
        off = max(100 * abs(ours - real) / real for ours, real in (model["peak"], model["end"]))
        results.value(("model_off_percent", name, way), off, at_most(OFF))
        if way == "stock":
            stock, acts = requested, model["acts"]
    plan = _json(machine, [machine.fork / "bin/pinbuddy", "plan", folder / "stock.pickle", "--device", "0", "--torch", "2.15.0",
                           "--threads", "1", "--time-limit", PATIENCE, "--json"])
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
    more = {**more, "PINBUDDY_SIM_DEVICE_GB": DEVICE_GB, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [machine.python(fork), ROOT / "tests/programs/device_trainings.py", name, *([snapshot] if snapshot else [])]
    return _json(machine, command, more)


def _json(machine: Machine, command: list, more: dict = {}, cwd: Path | None = None):
    """The last line that a command prints; of `--json`, all of it."""
    # Cargo and what it compiles never run under the simulator.
    environ = None if command[0] == "cargo" else {**machine.environ, **more}
    said = output(command, env=environ, cwd=cwd, stderr=subprocess.PIPE)
    try:
        return json.loads(said)
    except ValueError:
        return json.loads(said.splitlines()[-1])


def build(machine: Machine, results: Results, xtask: list) -> None:
    """The time of `build-wheel` with the official wheel and its headers cached and nothing compiled."""
    with machine.folder() as folder:

        def once(*more: str) -> dict:
            options = ["--json", "--python", sys.executable, "--out", folder / "dist"]
            return json.loads(output([*xtask, "build-wheel", *options, *more]))

        machine.say("what is fetched once")
        once()
        machine.say("compiling and writing")
        start = time.monotonic()
        summary = once("--cargo", str(folder / "cargo"))
        results.value(("build_wheel_s",), time.monotonic() - start)
        results.details["build"] = {"steps": summary["steps"]}
