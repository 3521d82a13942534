"""The parts of a run: budgets, rounds, figures, verdicts, and the table."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import measure_device
import measuring
import report
import run as whole_run
import stage
import suites
import targets
import ways


def test_a_stage_that_runs_out_of_its_time_is_stopped_with_all_that_it_started(tmp_path):
    child = "import time; open('child', 'w').write('here'); time.sleep(3); open('late', 'w').write('here')"
    program = f"""
import os, subprocess, sys
os.chdir({str(tmp_path)!r})
print("going on", flush=True)
subprocess.run([sys.executable, "-c", {child!r}])
"""
    command = [sys.executable, "-c", program]
    ended = stage.run(command, 1.5, tmp_path / "log")
    assert ended.outcome == "stopped" and "going on" in ended.detail
    time.sleep(2.5)
    assert (tmp_path / "child").exists() and not (tmp_path / "late").exists()


@pytest.mark.parametrize(("status", "outcome"), [(0, "done"), (3, "failed")])
def test_how_a_stage_ends(tmp_path, status, outcome):
    command = [sys.executable, "-c", f"print('the last words'); raise SystemExit({status})"]
    ended = stage.run(command, 20, tmp_path / "log")
    assert ended.outcome == outcome
    assert ended.detail == ("status 3: the last words" if status else "")


@pytest.fixture
def rounds(monkeypatch):
    """``rounds(seconds, each)``: the number of rounds, by a clock that only rounds advance."""
    now = 1000.0
    monkeypatch.setattr(measuring.time, "monotonic", lambda: now)

    def rounds(seconds: float, each: float, quick: bool = False) -> int:
        nonlocal now
        its = measuring.Fixture({}, simulated=False, quick=quick, seconds=seconds, programs=None, out=None)
        count = 0
        for _ in its.rounds(6):
            now += each
            count += 1
        return count

    return rounds


def test_rounds_fit_the_time_that_there_is(rounds):
    assert rounds(60, 0) == 6
    assert rounds(60, 0, quick=True) == 2
    assert rounds(0.5, 0.2) == 2
    assert rounds(0.4, 0.2) == 1, "two of them fit, and the room beside them does not"
    assert rounds(0, 0.01) == 1, "one there always is"


def test_figures_of_rounds():
    it = measuring.ratio([1, 2, 30], [2, 4, 10])
    # The medians are 2 and 4; the rounds' ratios are 0.5, 0.5 and 3.
    assert (it["ratio"], it["quartiles"]) == (0.5, [0.5, 1.75])
    assert measuring.spread([3.0])["quartiles"] == [3.0, 3.0]
    with pytest.raises(ValueError):
        measuring.ratio([1], [1, 2])


def results(simulated: bool, **measured) -> dict:
    return {"simulated": simulated, "measured": measured}


def steps(allocating: float) -> dict:
    figure = {"ratio": allocating, "quartiles": [allocating, allocating]}
    return {"ratio": {"warmed": dict.fromkeys(["allocating_s", "first_steps_s", "steady_step_s"], figure)}}


def verdicts(it: dict) -> dict[str, str]:
    return {line["name"]: line["verdict"] for line in targets.judge(it)}


def test_what_is_met_and_what_is_missed():
    name = "transformer: time in allocation, first 10 steps, over stock's"
    assert verdicts(results(False, transformer=steps(0.09)))[name] == "met"
    assert verdicts(results(False, transformer=steps(0.11)))[name] == "missed"
    assert set(verdicts(results(False)).values()) == {"not measured"}
    assert len(targets.TARGETS) == 13


def device(planned: float, expandable: float) -> dict:
    def gib(value):
        return {"reserved_gib": {"ratio": value, "quartiles": [value, value]}}

    return {"ratio": {"planned": gib(planned), "expandable segments": gib(expandable)}}


def test_a_plan_is_held_to_the_better_of_pytorchs_two():
    name = "device memory: reserved with a plan, over the better of PyTorch's"
    for planned, expandable, verdict in [(0.9, 0.95, "met"), (0.9, 0.8, "missed"), (1.1, 1.2, "missed")]:
        assert verdicts(results(False, device=device(planned, expandable)))[name] == verdict


def test_figures_of_device_memory():
    def run(reserved, streams=None):
        # With a plan, the peak of what is requested is an upper bound.
        return {"requested": (10 if streams else 9) << 30, "reserved": reserved << 30, "step_s": 0.5, "streams": streams}

    stream = {"hits": 5, "misses": 1, "unplanned": 0, "borrowed": 2, "dropped": False}
    ours = {name: [run(10, [stream, stream])] for name, way in measure_device.RUNS.items() if way == "ours"}
    stock = {"stock": [run(12)], "stock, another order": [run(20)]}
    expandable = {"expandable segments": [run(11)], "expandable segments, another order": [run(13)]}
    it = measure_device.results(stock | expandable | ours)
    assert it["figures"]["planned"]["efficiency"]["median"] == 0.9
    assert it["ratio"]["planned"]["reserved_gib"]["ratio"] == 10 / 12
    assert it["ratio"]["planned, another order"]["reserved_gib"]["ratio"] == 10 / 20
    assert "stock, another order" not in it["ratio"]
    assert it["served"]["planned"] == {"hits": 10, "misses": 2, "unplanned": 0, "borrowed": 4, "dropped": False}


def test_stages_fit_the_whole_time():
    tests, measurements = ([seconds for _, seconds in it.values()] for it in (whole_run.TESTS, whole_run.MEASUREMENTS))
    assert max(tests) + sum(measurements) <= whole_run.WHOLE


def test_nothing_is_judged_in_the_simulator():
    judged = verdicts(results(True, transformer=steps(0.01), optimizer=steps(5)))
    assert set(judged.values()) == {"not judged", "not measured"}


def test_pins_are_judged_with_the_default_number_of_threads():
    assert targets.default_pages({"times_faster": {"THP, 1": 0, "THP, 8": 0, "THP, 16": 0, "4 KiB, 2": 0}}) == "THP, 8"
    assert targets.default_pages({"times_faster": {"THP, 1": 0, "THP, 2": 0}}) == "THP, 2"


def test_a_failure_counts_where_stock_passes():
    stock = {"a": ["passed", ""], "b": ["failed", "as ever"], "c": ["passed", ""]}
    ours = {"a": ["passed", ""], "b": ["failed", "as ever"], "c": ["crashed", ""]}
    assert suites.broken({"stock": stock, "ours": ours}) == ["c crashed with ours"]
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
    way = lambda name: ways.Way(name, sys.executable, [str(tmp_path / name)])
    pythons = {name: suites._environment(way(name), tmp_path / f"{name}-environment") for name in ("ours", "stock")}
    for name, python in pythons.items():
        # torch is the interpreter's own.
        program = "import sample_of_ways, torch"
        done = subprocess.run([python, "-c", program], env=os.environ | {"PYTHONPATH": "/nowhere"}, capture_output=True, text=True)
        assert done.stdout == f"{name}\n", done.stderr


def test_googletests_lines():
    output = "[ RUN      ] S.a\n[       OK ] S.a (1 ms)\n[ RUN      ] S.b\nwhy\n[  FAILED  ] S.b (0 ms)\n"
    output += "[ RUN      ] S.c\n"
    assert suites.of_gtest(output) == {"S.a": ["passed", ""], "S.b": ["failed", ""], "S.c": ["crashed", ""]}


def test_ways_survive_the_rig(tmp_path):
    of_pack = ways.of_pack(tmp_path, "python3")
    assert ways.from_json(json.loads(json.dumps(ways.as_json(of_pack)))) == of_pack
    assert str(tmp_path / "plugin") in of_pack["ours"].environment()["PYTHONPATH"]
    stock = of_pack["stock"].environment()
    assert "plugin" not in stock["PYTHONPATH"] and stock["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"


def test_settings_of_the_callers_are_cleared(monkeypatch):
    monkeypatch.setenv("BUDDY_DISABLE", "1")
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "pinned_use_background_threads:True")
    environment = ways.of_environments("a", "b")["ours"].environment(BUDDY_BLOCK_COUNT=3)
    assert "BUDDY_DISABLE" not in environment and "PYTORCH_ALLOC_CONF" not in environment
    assert environment["BUDDY_BLOCK_COUNT"] == "3"


def test_numbers_and_tables():
    assert [report.number(it) for it in (0.01234, 1.5, 123.4)] == ["0.0123", "1.50", "123"]
    text = report.table(["a", "long head"], [["wider than its head", "1"]])
    assert [len(line) for line in text.splitlines()] == [len(text.splitlines()[0])] * 3
