"""tests/stress: many threads at once; no block has two owners, counters add up, nothing hangs. And soak.cpp, everything at once, for ten
seconds; with `cargo xtask test --all` for two minutes, beside the other tests and behind them: then it is begun first (`conftest.py`), and
takes what processors the others leave. Longer ones are `ci/soak.sh`'s. And, with `--all`, short ones with a defect that was put there on
purpose, whose clean end fails the test."""

import json
import os
import subprocess
from pathlib import Path

import figures
import native
import pytest
from conftest import ALL, REAL, interpreter, skip_on_a_real_gpu
from measure import torch_folder
from plugin import for_cpp

STRESS = Path(__file__).parents[1] / "stress"
SECONDS = float(os.environ.get("PINBUDDY_SOAK_SECONDS", "120" if ALL else "10"))
SETTINGS = {
    "BUDDY_BLOCK_SIZE_MB": 256, "BUDDY_BLOCK_COUNT": 2, "BUDDY_MAX_MB": 2048,
    # A program whose sizes never come to rest is left to PyTorch's own memory for a while. Children share that, too, as
    # with a driver.
    "PINBUDDY_SIM_SHARED": 1,
    # What copies have in flight is watched, and events come late and out of order.
    "PINBUDDY_SIM_HAZARDS": 1, "PINBUDDY_SIM_EVENT_LAG_MS": 20,
}


def stress(name: str, *arguments: float, **more) -> subprocess.CompletedProcess:
    program = native.program(STRESS / f"{name}.cpp", torch_folder(interpreter("stock")), "-O2", "-pthread")
    return native.run(program, *arguments, **for_cpp(), **more)


def soak(seconds: float, nice: int = 0, **defect) -> tuple[subprocess.CompletedProcess, dict]:
    """How it ended, and its figures."""
    done = stress("soak", seconds, 16, 1, timeout=seconds * 2 + 600, nice=nice, **SETTINGS, **defect)
    lines = done.stdout.splitlines()
    assert lines, f"{done.returncode}\n{done.stderr}"
    return done, json.loads(lines[-1])


def test_nothing_is_lost_and_memory_does_not_creep():
    done, seen = soak(SECONDS, nice=19 if ALL else 0)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    figures.write({name.replace("_", " "): it for name, it in seen.items()})
    assert seen["marks_lost"] == seen["hazards"] == 0
    for name in ("forks", "uses_on_streams", "copies_checked"):
        assert seen[name] > 0, seen
    if not REAL:
        assert seen["freed_in_flight"] > 0 and seen["epochs_with_faults"] > 0, seen


@pytest.mark.slow("shows what a soak would see: a matter of the soak, not of the library")
@pytest.mark.parametrize(("defect", "hazards"), [
    ({"PINBUDDY_SOAK_DEFECT": "overwrite"}, False),
    # The runtime says that events are complete as soon as they are recorded: blocks are handed out in flight.
    ({"PINBUDDY_SIM_FAULTS": "cudaEventQuery:1+=0"}, True),
], ids=["threads write where they must not", "blocks are handed out in flight"])
def test_a_seeded_defect_loses_marks_and_fails_the_soak(defect, hazards):
    skip_on_a_real_gpu(defect)
    done, seen = soak(8, **defect)
    assert done.returncode == 1, f"{done.stdout}\n{done.stderr}"
    assert seen["marks_lost"] > 0 and (seen["hazards"] > 0) == hazards, seen
    assert "somebody else wrote here at offset " in done.stderr
    assert "marks were lost" in done.stderr.splitlines()[-1]
    figures.write({"seeded defects found": 1})


@pytest.mark.release
@pytest.mark.parametrize("threads, threshold", [(1, 1), (4, 0), (16, 1)])
def test_blocks_stay_whole_while_threads_hand_over_clear_and_count(threads, threshold):
    """In C++, without the interpreter's lock: contents, events, counters."""
    done = stress("churn", threads, 1, 3000, threads, BUDDY_THRESHOLD_MB=threshold, BUDDY_BLOCK_SIZE_MB=64, BUDDY_BLOCK_COUNT=2)
    assert (done.returncode, done.stdout.strip()) == (0, str(threads * 3000)), done.stderr


@pytest.mark.release
@pytest.mark.parametrize("kib", [64, 16 * 1024])
@pytest.mark.parametrize("live, pairs, reads", [(4, 300_000, 0), (8, 300_000, 0), (4, 10_000_000, 1)])
def test_threads_that_share_a_few_blocks_never_pin_more_than_these(live, pairs, reads, kib):
    """Below the threshold and above it, with regions for one block or for a few: a thread finds what another has
    freed, wherever it is cached. A flush by who reads statistics beside them must not look like a lack of room."""
    done = stress("bounded", live, pairs, kib * 1024, *[1] * reads, BUDDY_BLOCK_SIZE_MB=64, BUDDY_WARMUP="off")
    before, after = map(int, done.stdout.split())
    assert before == after and live // 4 <= before <= live, done.stderr
    if kib == 64 and not reads:
        assert before == live, "stock's"
