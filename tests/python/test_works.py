"""The works that docs/settings.md has figures of still run, small, and their settings are those of the page; and so do the programs of
`cargo xtask bench --only worst`, with either wheel."""

import json
import sys
import tomllib
from pathlib import Path

import forked
import pytest
from conftest import forking

WORKS = Path(__file__).parents[1] / "programs"
sys.path.append(str(WORKS))
import measure_works as measure  # noqa: E402
import restarts  # noqa: E402

ROOT = Path(__file__).parents[2]

SLOW = pytest.mark.slow("it is run as the others are, and by the benchmark")
QUICK = ("loader", "kv_cache", "ranks")


@pytest.mark.parametrize("name", [it if it in QUICK else pytest.param(it, marks=SLOW) for it in measure.WORKS])
def test_a_work_runs_and_its_waits_are_recorded(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHON_EXEC", forking())
    seen = measure.run(name, {"BUDDY_TRACE": "run.{rank}.jsonl", "BUDDY_THRESHOLD_MB": "0"}, tmp_path, quick=True)
    assert seen["pinned"] >= seen["live"] > 0 and seen["ms"] > 0
    assert 0 < seen["waits"] <= seen["requests"]


@pytest.mark.slow("a minute; test_auto_plans has the parts")
def test_a_job_starts_warm_when_it_is_started_again():
    figures = restarts.measure(True, lambda line: None)
    for name, found in restarts.written(figures)["again"].items():
        stock, planned = found["stock"], found["pinbuddy-plan"]
        assert (planned["starts"], planned["pins"]) == (1, 1), (name, found)
        assert planned["over_live"] <= (1.08 if "vary" in name else 1.02), (name, found)
        assert planned["waited_ms"] * 10 <= stock["waited_ms"], (name, found)


@pytest.mark.checkout("the run is in docs")
def test_the_committed_run_and_the_page_are_of_these_settings():
    [newest] = sorted((ROOT / "docs/results").glob("*-works.json"))[-1:]
    works = json.loads(newest.read_text())["works"]
    assert list(works) == list(measure.WORKS)
    for name, work in works.items():
        assert {way: it["settings"] for way, it in work["figures"].items()} == measure.ways(name)
    page = (ROOT / "docs/settings.md").read_text()
    tables = tomllib.loads((ROOT / "docs/tables.toml").read_text())["table"]
    shown = {}
    for name in measure.WORKS:
        own = f"works-{name.replace('_', '-')}"
        assert f"<!-- table: {own} -->" in page
        shown |= {(name, way.replace("_", " ")): first.strip("`") for first, way in tables[own]["rows"]}
        for way, settings in measure.ways(name).items():
            typed = " ".join(f"{key}={value}" for key, value in settings.items())
            assert shown.pop((name, way)) == {"stock": "stock", "tuned": "stock tuned", "nothing": "nothing"}.get(way, typed)
    assert shown == {}


# One of each way to be judged that takes seconds; the benchmark runs all.
PRINTED = {
    "captures": {"seconds", "slowest", "pins", "peak_mib"},
    "random_large": {"pins", "peak_mib"},
    "growing_small": {"seconds", "pins", "peak_mib", "pinned_ever_mib"},
    "many_regions": {"seconds", "end_over_beginning", "areas"},
}


@pytest.mark.simulated("it counts")
@pytest.mark.parametrize("which", ["stock", "fork"])
@pytest.mark.parametrize("name", [it if it in ("captures", "growing_small") else pytest.param(it, marks=SLOW) for it in PRINTED])
def test_prints_its_figures(run, name, which):
    figures = run(forked.program([str(WORKS / f"{name}.py"), "--quick"]), which).value
    assert PRINTED[name] <= figures.keys()
    assert all(isinstance(value, (int, float)) for value in figures.values())
