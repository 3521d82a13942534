"""ci/tables.py: the tables of documents are what the committed runs say, and nothing else has figures without a reason."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "ci"))
import tables  # noqa: E402

sys.path.pop(0)

pytestmark = pytest.mark.checkout("the tables are in docs")


def test_every_table_and_the_picture_are_what_the_runs_say(capsys):
    assert tables.main(check=True) == 0, capsys.readouterr().out


RUN = {
    "ratio": {"8MiB": 0.306, "a/b": 1.0}, "context": {"spread": {"ratio": {"8MiB": [0.2, 0.4]}}},
    "checks": [{"name": "a b", "figures": {"ran": 2844, "all": 2885, "exact": 18.58}}], "said": "3",
}


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(tables, "run", {"x": RUN, "y": {"n": 7}}.__getitem__)


@pytest.mark.parametrize("text, shown", [
    ("{ratio/8MiB|2}", "0.31"),
    ("{ratio/8MiB|2~}", "0.31 (0.20 to 0.40)"),
    ("{ratio/a\\b*1000|,0} ms", "1,000 ms"),
    ("{checks/a_b/figures/ran|,0} of {checks/0/figures/all|0}", "2,844 of 2885"),
    ("{checks/a_b/figures/ran:checks/a_b/figures/all*100|1} %", "98.6 %"),
    ("{y@n|0}", "7"),
    ("{nothing|0|none}; {ratio/8MiB|3|none}", "none; 0.306"),
    # Four digits were kept of it, so there is no fifth.
    ("{checks/a_b/figures/exact|3}", "18.58"),
    ("no figure", "no figure"),
])  # fmt: skip
def test_a_cell(run, text, shown):
    assert tables.cell("x", text) == shown


@pytest.mark.parametrize("text", ["{nothing|0}", "{said|0}", "{checks/7|0}", "{ratio/a\\b|1~}", "{ratio|0}"])
def test_what_no_run_has_is_wrong(run, text):
    with pytest.raises(tables.Wrong, match="x has no"):
        tables.cell("x", text)


MADE = {"run": "x", "columns": ["", "a", "b"], "cells": ["{ratio/$|1}", "$"], "rows": [["one", "8MiB"], ["two", "", "2"]]}
WRITTEN = "<!-- table: t -->\n| | a | b |\n|---|---|---|\n| one | 0.3 | 8MiB |\n| two | | 2 |\n<!-- end -->"


def test_a_table_stands_between_its_markers(run):
    used = set()
    old = "before\n<!-- table: t -->\n| 9 |\n<!-- end -->\nafter"
    assert tables.written(old, {"t": MADE}, used) == f"before\n{WRITTEN}\nafter"
    assert used == {"t"}
    with pytest.raises(tables.Wrong, match="no table t"):
        tables.written(old, {}, used)
    with pytest.raises(tables.Wrong, match="1 cells, and 2"):
        tables.table({**MADE, "rows": [["one", "{ratio/8MiB|1}"]]})


def test_a_changed_figure_is_noticed(monkeypatch, capsys):
    """In any table: the committed pages are compared as a whole."""
    page = ROOT / "docs/measured.md"
    text = page.read_text()
    monkeypatch.setattr(tables, "written", lambda own, *rest, real=tables.written: real(own, *rest).replace("| 0.", "| 9.", 1))
    assert tables.main(check=True) == 1
    assert "docs/measured.md is not what the runs say" in capsys.readouterr().out and page.read_text() == text


def test_figures_of_no_run_are_noticed():
    for figure in ["0.36", "1,024 MiB", "**2.3** (2.0 to 2.6)", "5.3 to 8.9", "2, 1", "-3 %"]:
        assert tables.unmeasured(f"text\n\n| a | b |\n|---|---|\n| x | y |\n| x | {figure} |\n") == ["| a | b |"], figure
    for other in ["", "2.15.0 and later", "`8`", "two", "1 for all", "a 1", "to"]:
        assert tables.unmeasured(f"| a | b |\n|---|---|\n| x | {other} |\n") == [], other
    assert tables.unmeasured("| a | b |\n|---|---|\n| 1.2 | x |\n") == []
    assert tables.unmeasured("```\n| a | b |\n|---|---|\n| x | 1 |\n```\n") == []
    assert tables.unmeasured(WRITTEN) == []
