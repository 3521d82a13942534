"""Tests of what only a GPU can show, and of the parts of a run. The simulator skips tests that need working kernels.

Each test of the allocator runs a program in its own process, with its own settings, and uses `program` and `measure` of
tests/python.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "python"))

SIMULATED = os.environ.get("PINBUDDY_TEST_REAL") != "1"
needs_kernels = pytest.mark.skipif(SIMULATED, reason="kernels do nothing in the simulator")
# Blocks small enough for tests to fill.
SMALL = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "2", "BUDDY_THRESHOLD_MB": "1"}


@pytest.fixture
def ours():
    """``ours(program, VARIABLE=value)``: the program's answer with our allocator."""
    import measure

    return lambda program, **settings: measure.run(sys.executable, program, **SMALL | settings)
