"""examples/cpp/pinned.cpp: a libtorch program without Python, with the fork's library or the plug-in's."""

import json
from pathlib import Path

import native
import pytest
from plugin import IS_PLUGIN, library

EXAMPLE = Path(__file__).parents[2] / "examples/cpp/pinned.cpp"
pytestmark = pytest.mark.release
SMALL = {"BUDDY_BLOCK_SIZE_MB": "96", "BUDDY_BLOCK_COUNT": "1", "BUDDY_WARMUP": "sync"}


@pytest.fixture
def program():
    import torch

    folder = Path(torch.__file__).parent
    return native.program(EXAMPLE, folder, f"-Wl,-rpath,{folder}/lib")


def test_the_example_is_served_and_a_library_that_is_not_there_is_named(program):
    done = native.run(program, "/nowhere/libtorch_pinbuddy.so")
    assert done.returncode == 1 and "/nowhere/libtorch_pinbuddy.so" in done.stderr
    done = native.run(program, library(), **SMALL)
    assert done.returncode == 0, done.stderr
    who, _, stats = done.stdout.partition(": ")
    assert who == "served by pinbuddy"
    assert json.loads(stats)["engine"]["hits"] >= 1
    assert json.loads(stats)["segments"][0]["bytes"] == 96 << 20


@pytest.mark.parametrize("arguments, variables, said", [
    ([library], {"BUDDY_DISABLE": "1"}, "PyTorch's own allocator\n"),
    # Without the library, but in a fork.
    ([], SMALL, "PyTorch's own allocator\n" if IS_PLUGIN else "pinbuddy: {"),
])
def test_without_a_library_that_serves_it_is_stocks(program, arguments, variables, said):
    done = native.run(program, *(it() for it in arguments), **variables)
    assert done.returncode == 0 and done.stdout.startswith(f"served by {said}")
