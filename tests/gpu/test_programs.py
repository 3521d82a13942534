"""Programs that may hang or fail, and what is told of them: clients and the process that forks them, and questions."""

import os
import sys
import time
from pathlib import Path

import measure_clients
import measure_questions
import pytest
import report
import stage
from ways import Way

sys.path.append(str(Path(__file__).parent.parent / "programs"))
import nursery  # noqa: E402


@pytest.fixture
def forked(tmp_path):
    """``forked(PROGRAM)``: the outcome of a program, in a fork that has imported nothing."""

    def forked(text: str, limit: float = 20) -> dict:
        name = f"client_{abs(hash(text))}"
        (tmp_path / f"{name}.py").write_text(text)
        sys.path.insert(0, str(tmp_path))
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            nursery.child({"program": name, "with": {"size": 3}}, "stock", theirs)
            os._exit(0)
        os.close(theirs)
        sys.path.remove(str(tmp_path))
        try:
            return nursery.outcome(pid, ours, limit)
        finally:
            os.close(ours)

    return forked


@pytest.fixture(autouse=True)
def without_torch(monkeypatch):
    for name in ("require", "use_gpu"):
        monkeypatch.setattr(nursery.worker, name, lambda *_: None)


def test_figures_of_a_program(forked):
    assert forked("def run(size): return {'a': size / 2}") == {"figures": {"a": 1.5}}


def test_a_program_that_hangs_or_fails(forked):
    assert forked("import time\ndef run(size): time.sleep(60)", 0.5)["error"] == "stopped after 0 s"
    assert "no such size" in forked("def run(size): raise ValueError('no such size')")["error"]
    assert forked("import os\ndef run(size): os._exit(6)")["error"] == "ended with status 6 and said nothing"


def test_rounds_that_did_not_end_are_left_out():
    rounds = [
        {"stock": {"figures": {"a": 2.0, "peak_over_live": 0.0}}, "ours": {"figures": {"a": 1.0, "peak_over_live": 1.0}}},
        {"stock": {"figures": {"a": 9.0, "peak_over_live": 1.0}}, "ours": {"error": "stopped after 10 s"}},
    ]
    it = measure_clients.of_client(rounds)
    assert it["figures"]["a"]["ratio"]["ratio"] == 0.5 and it["figures"]["peak_over_live"]["ratio"] is None
    assert it["wrong"] == ["ours: stopped after 10 s"]
    assert measure_clients.broken({"x": it}) == ["x ours: stopped after 10 s"]
    both = it | {"wrong": ["stock: stopped after 10 s", "ours: stopped after 10 s"]}
    assert measure_clients.broken({"x": both}) == []


def test_a_parent_that_does_not_start_is_said(tmp_path):
    its = measure_clients.Nursery(Way("stock", str(Path("/bin/false"))), {}, tmp_path / "log")
    its.start()
    with pytest.raises(RuntimeError, match="does not start"):
        its.ready()
    its.close()


def run(program: str, tmp_path, seconds: float = 60) -> stage.Ended:
    return stage.run([sys.executable, "-c", program], seconds, tmp_path / "log", keep=True)


def test_one_that_hangs_is_killed_and_what_it_had_said_counts(tmp_path):
    child = "import time; time.sleep(2); open('late', 'w')"
    program = f"""
import os, subprocess, sys, time
os.chdir({str(tmp_path)!r})
print('{{"asking": "a", "on": ""}}')
print('{{"of": "a", "on": "", "answer": "yes"}}')
print('{{"asking": "b", "on": "x"}}', flush=True)
subprocess.Popen([sys.executable, "-c", {child!r}])
time.sleep(60)
"""
    start = time.monotonic()
    ended = run(program, tmp_path, 1.5)
    assert ended.outcome == "stopped" and time.monotonic() - start < 10
    told = measure_questions.answers(ended)
    assert [(one["of"], one["on"], one["answer"]) for one in told] == [
        ("a", "", "yes"), ("b", "x", "cannot be asked here"),
    ]
    assert "stopped after" in told[1]["why"]
    time.sleep(2)
    assert not (tmp_path / "late").exists(), "its child goes with it"


def test_one_that_dies_says_how(tmp_path):
    ended = run("import os; print('last words', file=__import__('sys').stderr, flush=True); os.abort()", tmp_path)
    (told,) = measure_questions.answers(ended)
    assert told["answer"] == "cannot be asked here" and "status -6: last words" in told["why"]


def test_a_defect_of_a_question_fails_the_run_and_a_hang_only_in_the_simulator():
    answer = {"of": "wrong", "on": "", "answer": "cannot be asked here", "why": "it panicked"}
    told = {"pace": {"outcome": "done", "detail": "", "answers": [answer | {"fault": True}]}}
    assert measure_questions.broken(told, simulated=False) == ["pace: wrong: it panicked"]
    hung = {"pace": {"outcome": "stopped", "detail": "stopped after 5 s", "answers": [answer]}}
    assert measure_questions.broken(hung, simulated=False) == []
    assert measure_questions.broken(hung, simulated=True) == ["pace: stopped after 5 s"]
    silent = {"pace": {"outcome": "done", "detail": "", "answers": []}}
    assert measure_questions.broken(silent, simulated=False) == ["pace: it asked nothing"]


def test_the_table_says_what_was_answered_and_what_not():
    figure = {"answer": "figure", "unit": "s/GiB", "median": 0.25, "least": 0.2, "most": 0.5}
    told = [
        {"of": "pace", "on": "1 GiB", **figure},
        {"of": "crosses?", "on": "", "answer": "yes", "why": "a|b"},
        {"of": "kernels?", "on": "", "answer": "cannot be asked here", "why": "no torch"},
    ]
    asked = {"pace": {"asked": "What?", "then": "how", "outcome": "stopped", "detail": "after 5 s", "answers": told}}
    text = report.questions(asked)
    assert "1 yes, 1 figures, 1 that cannot be asked here; after 5 s" in text
    assert "0.250 s/GiB (0.200 to 0.500)" in text and "a/b" in text
    assert "- no torch: kernels?" in text
