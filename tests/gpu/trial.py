"""Tries `run.py` in the simulator: its tests, and every measurement once. `cargo xtask test --all` has pytest run it, with an
environment instead of a pack. No part of a run on a GPU, so it has no test's name."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from measure_questions import CANNOT
from run import MEASUREMENTS

HERE = Path(__file__).parent
SUITE = "GPU tests"
XTASK = os.environ["PINBUDDY_XTASK"]


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """The folder of a run in which no test has failed, no program was worse than with stock, and every stage has ended."""
    out = tmp_path_factory.mktemp("trial")
    (out / "bin").mkdir()
    for name in ("harness", "questions"):
        shutil.copy2(os.environ[f"PINBUDDY_{name.upper()}"], out / "bin" / name)
    words = [XTASK, "sim", "--", sys.executable, HERE / "run.py", "--simulator", "--quick", "--only", ",".join([SUITE, *MEASUREMENTS])]
    words += ["--stock", os.environ["PINBUDDY_STOCK_PYTHON"], "--fork", sys.executable, "--programs", out / "bin", "--out", out]
    assert subprocess.run(words).returncode == 0
    return out


def test_all_was_measured_and_nothing_is_judged_that_the_simulator_gives(out):
    results = json.loads((out / "results.json").read_text())
    assert results["measured"].keys() == MEASUREMENTS.keys() and all(results["measured"].values())
    assert results["simulated"] is True
    assert {it["verdict"] for it in results["targets"]} == {"not judged"}, results["targets"]
    outcomes = [it for it, _ in results["tests"][SUITE]["runs"]["ours"].values()]
    assert outcomes.count("passed") > 10 and {*outcomes} <= {"passed", "skipped"}
    answers = [it["answer"] for question in results["measured"]["questions"].values() for it in question["answers"]]
    assert {*answers} == {CANNOT}


def test_all_plots_are_drawn(out):
    bench = HERE.parent / "bench/run.py"
    subprocess.run(["python3", bench, "--xtask", XTASK, "--plot", out / "results.json", "--out", out], check=True)
    assert {it.name for it in out.glob("*.svg")} == {"steps-transformer.svg", "steps-optimizer.svg"}
