"""The parts of a run: rounds, verdicts, stages, processes, and what it tells of tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import measuring
import pytest
import report
import run as whole_run
import suites
import targets
import ways


# Of two that fit, one has no room beside it; one there always is.
@pytest.mark.parametrize(("seconds", "each", "quick", "count"), [
    (60, 0, False, 6), (60, 0, True, 2), (0.5, 0.2, False, 2), (0.42, 0.2, False, 1), (0, 0.01, False, 1)])
def test_rounds_fit_the_time_that_there_is(monkeypatch, seconds, each, quick, count):
    """By a clock that only rounds advance."""
    now = 1000.0
    monkeypatch.setattr(measuring.time, "monotonic", lambda: now)
    for seen, _ in enumerate(measuring.Fixture({}, simulated=False, quick=quick, seconds=seconds, programs=None, out=None).rounds(6), 1):
        now += each
    assert seen == count


def ratio(value: float) -> dict:
    return {"ratio": value, "quartiles": [value, value]}


def verdict(name: str, **measured) -> str:
    return {it["name"]: it["verdict"] for it in targets.judge({"simulated": False, "measured": measured})}[name]


@pytest.mark.parametrize(("value", "expected"), [(0.09, "met"), (0.11, "missed"), (None, "not measured")])
def test_a_figure_is_held_to_its_target(value, expected):
    measured = {} if value is None else {"transformer": {"ratio": {"warmed": {"allocating_s": ratio(value)}}}}
    assert verdict("transformer: time in allocation, first 10 steps, over stock's", **measured) == expected


@pytest.mark.parametrize(("planned", "expandable", "expected"), [(0.9, 0.95, "met"), (0.9, 0.8, "missed"), (1.1, 1.2, "missed")])
def test_a_plan_is_held_to_the_better_of_pytorchs_two(planned, expandable, expected):
    both = {"planned": {"reserved_gib": ratio(planned)}, "expandable segments": {"reserved_gib": ratio(expandable)}}
    assert verdict("device memory: reserved with a plan, over the better of PyTorch's", device={"ratio": both}) == expected


def test_pins_are_judged_with_the_default_number_of_threads():
    assert targets.default_pages({"times_faster": {"THP, 1": 0, "THP, 8": 0, "THP, 16": 0, "4 KiB, 2": 0}}) == "THP, 8"


def test_stages_fit_the_whole_time():
    tests, measurements = ([seconds for _, seconds in it.values()] for it in (whole_run.TESTS, whole_run.MEASUREMENTS))
    assert max(tests) + sum(measurements) <= whole_run.WHOLE


def test_a_failure_counts_where_stock_passes():
    stock = {"a": ["passed", ""], "b": ["failed", "as ever"], "c": ["passed", ""]}
    assert suites.broken({"stock": stock, "ours": stock | {"c": ["crashed", ""]}}) == ["c crashed with ours"]
    assert suites.broken({"ours": {"a": ["failed", "1 != 2"]}}) == ["a failed with ours: 1 != 2"]


def test_what_did_not_run_is_told(tmp_path):
    lines = [{"collected": ["a", "b", "c"]}, {"test": "a", "outcome": "passed", "detail": ""}, {"test": "b", "outcome": "failed", "detail": "why"}]
    file = tmp_path / "lines"
    file.write_text("\n".join(map(json.dumps, lines)) + '\n{"test": "c", "outc')
    seen = suites._read(file)
    assert seen == {"a": ["passed", ""], "b": ["failed", "why"], "c": [suites.NOT_RUN, ""]}
    assert "| 1      | 1      | 0       | 0       | 1       |" in report._tests({"s": {"runs": {"ours": seen}}})


def test_a_failed_test_says_where_and_what(tmp_path):
    """Run as a stage runs it; a long text keeps its beginning and its end."""
    program = "def test_it():\n    assert [1, 2] == [1, 3], 'said ' + 400 * 'y' + ' the end'\n"
    (tmp_path / "test_sample.py").write_text(program)
    environment = os.environ | {"OUTCOMES": str(tmp_path / "lines"), "PYTHONPATH": os.pathsep.join([str(Path(suites.__file__).parent), *sys.path])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "outcomes", "test_sample.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    outcome, detail = suites._read(tmp_path / "lines")["test_sample.py::test_it"]
    assert outcome == "failed", done.stdout
    assert detail.startswith("test_sample.py:2: AssertionError: said y") and "assert [1, 2] == [1, 3]" in detail and len(detail) < 520


def test_an_interpreter_has_its_packages_whatever_a_program_is_told(tmp_path):
    for name in ("ours", "stock"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sample_of_ways.py").write_text(f"print({name!r})")
        way = ways.Way(name, sys.executable, [str(tmp_path / name)])
        python = suites._environment(way, tmp_path / f"{name}-environment")
        # torch is the interpreter's own.
        command = [python, "-c", "import sample_of_ways, torch"]
        done = subprocess.run(command, env=os.environ | {"PYTHONPATH": "/nowhere"}, capture_output=True, text=True)
        assert done.stdout == f"{name}\n", done.stderr


def test_a_process_has_its_ways_settings_and_none_of_the_callers(tmp_path, monkeypatch):
    monkeypatch.setenv("BUDDY_DISABLE", "1")
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "pinned_use_background_threads:True")
    its = measuring.Fixture(ways.of_pack(tmp_path, "python3"), True, True, 1.0, tmp_path, tmp_path / "out")
    read = measuring.Fixture.of_json(its.as_json())
    assert read == its
    stock, ours = (read.ways[name].environment(BUDDY_BLOCK_COUNT=3) for name in ("stock", "ours"))
    assert "BUDDY_DISABLE" not in ours and "PYTORCH_ALLOC_CONF" not in ours and ours["BUDDY_BLOCK_COUNT"] == "3"
    assert str(tmp_path / "plugin") in ours["PYTHONPATH"]
    assert "plugin" not in stock["PYTHONPATH"] and stock["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"
