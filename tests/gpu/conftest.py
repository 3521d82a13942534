"""Tests of what only a GPU can show, and of the parts of a run. In the simulator, where kernels do nothing, those
that need one to do something are skipped.

Each test of the allocator is a program in a process of its own, with settings of its own; `program` and `production`
of tests/python are what its tests use, too.
"""

import os
import sys
from pathlib import Path

import pytest

PYTHON_TESTS = Path(__file__).parent.parent / "python"
sys.path.append(str(PYTHON_TESTS))

SIMULATED = os.environ.get("PINBUDDY_TEST_REAL") != "1"
needs_kernels = pytest.mark.skipif(SIMULATED, reason="kernels do nothing in the simulator")
# Blocks of a size that tests can fill.
SMALL = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "2", "BUDDY_THRESHOLD_MB": "1"}


@pytest.fixture
def ours():
    """``ours(program, VARIABLE=value)``: what the program answers, run with our allocator."""
    import production

    def ours(program: str, **settings: str):
        return production.run(sys.executable, program, **SMALL | settings)

    return ours
