"""Tries `run.py` in the simulator: its tests, and every measurement once. `cargo xtask test --all` has pytest run it, with an
environment instead of a pack. No part of a run on a GPU, so it has no test's name.
"""

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
    """The run's folder."""
    out = tmp_path_factory.mktemp("trial")
    (out / "bin").mkdir()
    for name in ("harness", "questions"):
        shutil.copy2(os.environ[f"PINBUDDY_{name.upper()}"], out / "bin" / name)
    words = [XTASK, "sim", "--", sys.executable, HERE / "run.py", "--simulator", "--quick", "--only", ",".join([SUITE, *MEASUREMENTS])]
    words += ["--stock", os.environ["PINBUDDY_STOCK_PYTHON"], "--fork", sys.executable, "--programs", out / "bin", "--out", out]
    assert subprocess.run(words).returncode == 0
    return out


@pytest.fixture(scope="module")
def results(out) -> dict:
    return json.loads((out / "results.json").read_text())


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_it_was_measured(results, name):
    assert isinstance(results["measured"][name], dict)


def test_no_test_failed(results):
    outcomes = results["tests"][SUITE]["runs"]["ours"]
    assert [it for it, _ in outcomes.values()].count("passed") > 10
    assert {test: it for test, it in outcomes.items() if it[0] not in ("passed", "skipped")} == {}


def test_what_the_simulator_gives_is_never_judged_and_always_whole(results):
    assert results["simulated"] is True
    assert {it["verdict"] for it in results["targets"]} == {"not judged"}, results["targets"]


def test_the_simulator_answers_nothing_that_only_a_driver_can(results):
    questions = results["measured"]["questions"]
    answers = {name: [it["answer"] for it in question["answers"]] for name, question in questions.items() if isinstance(question, dict) and "answers" in question}
    assert answers
    assert {it for all in answers.values() for it in all} <= {CANNOT}, answers


def test_all_plots_are_drawn(out):
    bench = HERE.parent / "bench/run.py"
    subprocess.run(["python3", bench, "--xtask", XTASK, "--plot", out / "results.json", "--out", out], check=True)
    assert len(list(out.glob("*.svg"))) == 5
