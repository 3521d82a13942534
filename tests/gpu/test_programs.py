"""Programs that may hang or fail, and what is told of them: clients and the process that forks them, and questions."""

import sys
import time
from pathlib import Path

import measure_clients
import measure_questions
import pytest
import report
import stage

sys.path.append(str(Path(__file__).parent.parent / "programs"))
import nursery  # noqa: E402


@pytest.mark.parametrize(("program", "limit", "told"), [
    ("def run(size): return {'a': size / 2}", 20, {"figures": {"a": 1.5}}),
    ("import time\ndef run(size): time.sleep(60)", 0.5, "stopped after 0 s"),
    ("def run(size): raise ValueError('no such size')", 20, "no such size"),
    ("import os\ndef run(size): os._exit(6)", 20, "ended with status 6 and said nothing"),
], ids=["ends", "hangs", "fails", "dies"])
def test_the_outcome_of_a_forked_program(tmp_path, monkeypatch, request, program, limit, told):
    monkeypatch.setattr(nursery, "ready", lambda which: None)
    monkeypatch.syspath_prepend(tmp_path)
    name = f"client_{request.node.callspec.id}"
    (tmp_path / f"{name}.py").write_text(program)
    outcome = nursery.run(name, {"size": 3}, "stock", limit)
    assert outcome == told if isinstance(told, dict) else told in outcome["error"]


def test_rounds_that_did_not_end_are_left_out():
    rounds = [
        {"stock": {"figures": {"a": 2.0, "peak_over_live": 0.0}}, "ours": {"figures": {"a": 1.0, "peak_over_live": 1.0}}},
        {"stock": {"figures": {"a": 9.0, "peak_over_live": 1.0}}, "ours": {"error": "stopped after 10 s"}},
    ]
    it = measure_clients.of_client(rounds)
    assert it["figures"]["a"]["ratio"]["ratio"] == 0.5 and it["figures"]["peak_over_live"]["ratio"] is None
    assert measure_clients.broken({"x": it}) == ["x ours: stopped after 10 s"]
    both = it | {"wrong": ["stock: stopped after 10 s", *it["wrong"]]}
    assert measure_clients.broken({"x": both}) == []


def test_one_that_hangs_is_killed_and_what_it_had_said_counts(tmp_path):
    child = "import time; open('child', 'w'); time.sleep(3); open('late', 'w')"
    program = f"""
import os, subprocess, sys, time
os.chdir({str(tmp_path)!r})
print('{{"asking": "a", "on": ""}}')
print('{{"of": "a", "on": "", "answer": "yes"}}')
print('{{"asking": "b", "on": "x"}}', flush=True)
print("going on", file=sys.stderr, flush=True)
subprocess.run([sys.executable, "-c", {child!r}])
"""
    start = time.monotonic()
    ended = stage.run([sys.executable, "-c", program], 1.5, tmp_path / "log", keep=True)
    assert ended.outcome == "stopped" and time.monotonic() - start < 10
    told = measure_questions.answers(ended)
    assert [(one["of"], one["on"], one["answer"]) for one in told] == [("a", "", "yes"), ("b", "x", measure_questions.CANNOT)]
    assert told[1]["why"] == "stopped after 2 s: going on"
    time.sleep(max(0, start + 4 - time.monotonic()))
    assert (tmp_path / "child").exists() and not (tmp_path / "late").exists(), "its child goes with it"


def test_one_that_dies_says_how(tmp_path):
    program = "import os, sys; print('last words', file=sys.stderr, flush=True); os.abort()"
    (told,) = measure_questions.answers(stage.run([sys.executable, "-c", program], 60, tmp_path / "log", keep=True))
    assert told["answer"] == measure_questions.CANNOT and "status -6: last words" in told["why"]


def test_a_defect_of_a_question_fails_the_run_and_a_hang_only_in_the_simulator():
    def broken(simulated: bool, *answers: dict, **ended: str) -> list[str]:
        told = {"outcome": "done", "detail": "", "answers": list(answers)} | ended
        return measure_questions.broken({"pace": told}, simulated)

    answer = {"of": "wrong", "on": "", "answer": measure_questions.CANNOT, "why": "it panicked"}
    assert broken(False, answer | {"fault": True}) == ["pace: wrong: it panicked"]
    hung = {"outcome": "stopped", "detail": "stopped after 5 s"}
    assert broken(False, answer, **hung) == []
    assert broken(True, answer, **hung) == ["pace: stopped after 5 s"]
    assert broken(False) == ["pace: it asked nothing"]


def test_the_table_says_what_was_answered_and_what_not():
    figure = {"answer": "figure", "unit": "s/GiB", "median": 0.25, "least": 0.2, "most": 0.5}
    cannot = {"of": "kernels?", "on": "4 KiB", "answer": measure_questions.CANNOT, "why": "no|torch"}
    told = [{"of": "pace", "on": "1 GiB", **figure}, cannot]
    asked = {"pace": {"asked": "What?", "then": "how", "outcome": "stopped", "detail": "after 5 s", "answers": told}}
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in report.questions(asked).splitlines()]
    assert ["what only a GPU can answer", "What?"] in lines and ["detail", "after 5 s"] in lines
    assert ["pace, 1 GiB", "0.250 s/GiB (0.200 to 0.500)", ""] in lines
    assert ["kernels?, 4 KiB", measure_questions.CANNOT, "no/torch"] in lines
