"""Many threads at once: no block has two owners, counters add up, nothing hangs."""

from pathlib import Path

import native
import pytest
from conftest import interpreter
from measure import torch_folder
from plugin import for_cpp

pytestmark = pytest.mark.release

STRESS = Path(__file__).parent.parent / "stress"


def stress(name: str, *arguments: int, **variables):
    """Runs a stress program with the library that is tested."""
    program = native.program(STRESS / f"{name}.cpp", torch_folder(interpreter("stock")), "-O2", "-pthread")
    return native.run(program, *arguments, **for_cpp(), **variables)


@pytest.mark.parametrize("threads, threshold", [(1, 1), (4, 0), (16, 1)])
def test_blocks_stay_whole_while_threads_hand_over_clear_and_count(threads, threshold):
    """In C++, without the interpreter's lock: contents, events, counters."""
    done = stress("churn", threads, 1, 3000, threads, BUDDY_THRESHOLD_MB=threshold, BUDDY_BLOCK_SIZE_MB=64, BUDDY_BLOCK_COUNT=2)
    assert (done.returncode, done.stdout.strip()) == (0, str(threads * 3000)), done.stderr


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
