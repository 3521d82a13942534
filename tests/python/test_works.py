"""The works that docs/settings.md has figures of still run, small, and are measured as the page says."""

import json
import sys
from pathlib import Path

import pytest

WORKS = Path(__file__).parents[1] / "works"
sys.path.append(str(WORKS))
import measure  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", measure.WORKS)
def test_a_work_runs_and_its_waits_are_recorded(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PINBUDDY_TEST_SMALL", "1")
    seen = measure.run(name, {"BUDDY_TRACE": "run.{rank}.jsonl", "BUDDY_THRESHOLD_MB": "0"}, tmp_path)
    assert seen["pinned"] >= seen["live"] > 0
    assert 0 < seen["waits"] <= seen["requests"]
    assert seen["ms"] > 0


def test_settings_are_measured_beside_stock_and_nothing(monkeypatch):
    monkeypatch.setenv("PINBUDDY_TEST_SMALL", "1")
    figures = measure.measure("lengths", 1, lambda line: None)["figures"]
    assert list(figures)[:2] == ["stock", "nothing"] and len(figures) == 5
    assert all(it["over live"] >= 1 for it in figures.values())
    assert figures["plan"]["waits"] <= figures["nothing"]["waits"]


def test_the_committed_run_is_of_these_settings():
    [newest] = sorted((ROOT / "docs/results").glob("*-works.json"))[-1:]
    works = json.loads(newest.read_text())["works"]
    assert list(works) == list(measure.WORKS)
    for name, work in works.items():
        settings = {way: it["settings"] for way, it in work["figures"].items()}
        assert settings == measure.ways(name)
