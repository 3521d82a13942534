"""Programs that may hang or fail, and what is told of them: clients and the process that forks them, and questions."""

import sys
import time
from pathlib import Path

import measure_questions
import pytest
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
