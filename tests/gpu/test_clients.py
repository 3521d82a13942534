"""Client programs and the process that forks them: figures, hangs, and their evaluation."""

import os
import sys
from pathlib import Path

import measure_clients
import nursery
import pytest
from ways import Way


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
            nursery.child({"client": name, "with": {"size": 3}}, "stock", theirs)
            os._exit(0)
        os.close(theirs)
        sys.path.remove(str(tmp_path))
        try:
            return nursery.outcome(pid, ours, limit)
        finally:
            os.close(ours)

    return forked


def test_figures_of_a_program(forked, monkeypatch):
    monkeypatch.setattr(nursery.worker, "require", lambda which: None)
    told = forked("ENDS = True\ndef run(size): return {'a': size / 2}")
    assert told["figures"].pop("a") == 1.5
    assert 0 <= told["figures"].pop("until its process is gone") < 5


def test_a_program_that_hangs_or_fails(forked, monkeypatch):
    monkeypatch.setattr(nursery.worker, "require", lambda which: None)
    assert forked("import time\ndef run(size): time.sleep(60)", 0.5)["error"] == "stopped after 0 s"
    assert "no such size" in forked("def run(size): raise ValueError('no such size')")["error"]
    assert forked("import os\ndef run(size): os._exit(6)")["error"] == "ended with status 6 and said nothing"


def test_rounds_that_did_not_end_are_left_out():
    rounds = [
        {"stock": {"figures": {"a": 2.0, "over live": 0.0}}, "ours": {"figures": {"a": 1.0, "over live": 1.0}}},
        {"stock": {"figures": {"a": 9.0, "over live": 1.0}}, "ours": {"error": "stopped after 10 s"}},
    ]
    it = measure_clients.of_client(rounds)
    assert it["figures"]["a"]["ratio"]["ratio"] == 0.5 and it["figures"]["over live"]["ratio"] is None
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
