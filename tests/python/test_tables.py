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
