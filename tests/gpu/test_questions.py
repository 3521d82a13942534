"""The questions' own parts: limits, answer lines and their evaluation, with a stand-in for the driver."""

import ctypes
import json
import os
import sys
import time
from pathlib import Path

import isolated
import measure_questions
import pytest
import report_questions

QUESTIONS = Path(__file__).parent / "questions"
sys.path.append(str(QUESTIONS))

import arena  # noqa: E402
import libcuda  # noqa: E402
from driver_stand_in import GRANULARITY, StandIn  # noqa: E402


def run(program: str, tmp_path, seconds: float = 60) -> isolated.Ended:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(QUESTIONS), str(QUESTIONS.parent)])}
    return isolated.run([sys.executable, "-c", program], environment, seconds, tmp_path / "log")


def answers(ended: isolated.Ended) -> dict[str, str]:
    return {one["of"]: one["answer"] for one in measure_questions.answers(ended, simulated=False)}


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
    told = measure_questions.answers(ended, simulated=False)
    assert [(one["of"], one["on"], one["answer"]) for one in told] == [
        ("a", "", "yes"), ("b", "x", "cannot be asked here"),
    ]
    assert "stopped after" in told[1]["why"]
    time.sleep(2)
    assert not (tmp_path / "late").exists(), "its child goes with it"


def test_one_that_dies_says_how(tmp_path):
    ended = run("import os; print('last words', file=__import__('sys').stderr, flush=True); os.abort()", tmp_path)
    (told,) = measure_questions.answers(ended, simulated=False)
    assert told["answer"] == "cannot be asked here" and "status -6: last words" in told["why"]


ASKING = """
import sys
from asking import Asking, Figure, Said
from libcuda import Refused, Unavailable
it = Asking(True, 60)
def fails(error):
    raise error
"""


def test_what_fails_is_an_answer_and_the_next_is_asked(tmp_path):
    program = ASKING + """
refused = Refused("cudaSomething", 1, "why")
it.ask("refused", "", lambda: fails(refused), refusal_is_no=True)
it.ask("failed", "", lambda: fails(refused))
it.ask("missing", "", lambda: fails(Unavailable("not here")))
it.ask("short", "", lambda: fails(MemoryError()))
it.ask("wrong", "", lambda: fails(TypeError("mine")))
it.ask("never", "", lambda: Figure("s", []))
it.ask("figure", "", lambda: Figure("s", [1.0, 2.0, 9.0]))
assert it.need("needed", "", lambda: fails(OSError("no"))) is None
assert it.need("there", "", lambda: 7) == 7
it.seconds = 0
it.ask("late", "", lambda: Said(True))
"""
    ended = run(program, tmp_path)
    assert ended.outcome == "done", (tmp_path / "log").read_text()
    cannot = "cannot be asked here"
    assert answers(ended) == {
        "refused": "no", "failed": cannot, "missing": cannot, "short": cannot, "wrong": cannot, "never": cannot,
        "figure": "figure", "needed": cannot, "late": cannot,
    }
    told = measure_questions.answers(ended, simulated=False)
    assert [one["of"] for one in told if one.get("fault")] == ["wrong"]
    figure = next(one for one in told if one["of"] == "figure")
    assert (figure["median"], figure["most"], figure["rounds"]) == (2.0, 9.0, [1.0, 2.0, 9.0])
    listed = {"pace": {"outcome": "done", "detail": "", "answers": told}}
    assert measure_questions.broken(listed, simulated=False) == ["pace: wrong: TypeError: mine"]


def test_the_simulator_answers_nothing():
    said = {"of": "a", "on": "b", "answer": "yes", "why": "c"}
    told = measure_questions.of_simulator(said)
    assert told["answer"] == "cannot be asked here" and told["tried"] == {"answer": "yes", "why": "c"}
    own = {"of": "a", "on": "b", "answer": "cannot be asked here", "why": "kernels compute nothing here"}
    assert measure_questions.of_simulator(own) == own


def test_structures_are_as_long_as_the_drivers():
    # From cuda.h of CUDA 12 and 13.
    assert ctypes.sizeof(arena.Properties) == 32 and arena.Properties.location.offset == 8
    assert ctypes.sizeof(arena.Access) == 12


def test_an_arena_grows_and_shrinks():
    driver = StandIn()
    its = arena.Arena(driver, 0, arena.node_of(driver, 0), 16 * GRANULARITY)
    assert its.node == 0
    first, second = its.grow(GRANULARITY), its.grow(2 * GRANULARITY)
    assert second == first + GRANULARITY and driver.open_to[second] == {1, 3}
    with pytest.raises(libcuda.Unavailable, match="multiples"):
        its.grow(GRANULARITY - 1)
    assert its.shrink() == 2 * GRANULARITY and its.size == GRANULARITY
    its.close()
    assert not driver.pieces and not driver.mapped and not driver.reserved


def test_a_driver_without_pieces_says_so():
    driver = StandIn()
    driver.attribute = lambda number, device: 0
    with pytest.raises(libcuda.Unavailable, match="does not support"):
        arena.node_of(driver, 0)


def test_what_is_asked_of_pieces(tmp_path):
    """All questions, with a runtime that copies and a stand-in for the driver."""
    program = ASKING + """
import arena, driver_stand_in, host_pieces, libcuda
host_pieces.examine(it, libcuda.runtime(), arena.Arena(driver_stand_in.StandIn(), 0, 0, 1 << 30))
"""
    ended = run(program, tmp_path)
    assert ended.outcome == "done", (tmp_path / "log").read_text()
    assert answers(ended) == {
        "may two pieces lie side by side?": "yes",
        "does a copy to the device cross their border?": "yes",
        "does a copy to the host cross their border?": "yes",
        "does a forked child read them?": "yes",
        "making and mapping a piece": "figure",
        "writing all of it the first time": "figure",
        "giving it back": "figure",
    }


def test_a_child_that_cannot_read_is_no_answer_yes(tmp_path):
    program = ASKING + """
import children
it.ask("nowhere", "", lambda: children.reads(8, b"abc"))
"""
    (told,) = measure_questions.answers(run(program, tmp_path), simulated=False)
    assert told["answer"] == "no" and told["why"] == "the child died of SIGSEGV"


def test_a_byte_that_is_wrong_is_found(tmp_path):
    program = ASKING + """
from crossing import first_difference
it.ask("wrong", "", lambda: first_difference(b"abcd", b"abxd"))
"""
    (told,) = measure_questions.answers(run(program, tmp_path), simulated=False)
    assert told["answer"] == "no" and told["why"].startswith("byte 2 of 4 is 99, expected 120")


def test_calls_belong_to_what_they_overlapped_longest(tmp_path):
    program = """
import json, sys, types
sys.modules["probing"] = types.ModuleType("probing")
from stalls import sort_out
spans = {"registered": [(1, 2), (3, 4)], "unregistered": [(2, 3), (4, 5)]}
samples = [(0.0, 0.5), (1.1, 0.1), (1.9, 0.9), (3.5, 0.4), (6.0, 1.0)]
print(json.dumps(sort_out(samples, spans)))
"""
    ended = run(program, tmp_path)
    assert json.loads(ended.said) == {"registered": [0.1, 0.4], "unregistered": [0.9]}


def test_the_table_says_what_was_answered_and_what_not():
    figure = {"answer": "figure", "unit": "s/GiB", "median": 0.25, "least": 0.2, "most": 0.5}
    told = [
        {"of": "pace", "on": "1 GiB", **figure},
        {"of": "crosses?", "on": "", "answer": "yes", "why": "a|b"},
        {"of": "kernels?", "on": "", "answer": "cannot be asked here", "why": "no torch"},
    ]
    asked = {"pace": {"asked": "What?", "then": "how", "outcome": "stopped", "detail": "after 5 s", "answers": told}}
    text = report_questions.questions(asked)
    assert "1 yes, 1 figures, 1 that cannot be asked here; after 5 s" in text
    assert "0.250 s/GiB (0.200 to 0.500)" in text and "a/b" in text
    assert "- no torch: kernels?" in text
