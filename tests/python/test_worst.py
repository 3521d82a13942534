"""The programs of `cargo xtask bench --only worst` run with either wheel, and print what is judged of them."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import interpreter
from measure import environment

HERE = Path(__file__).parent / "worst"
# One of each way to be judged that takes seconds; the benchmark runs all.
PRINTED = {
    "captures": {"seconds", "slowest", "pins", "peak_mib"},
    "random_large": {"pins", "peak_mib"},
    "growing_small": {"seconds", "pins", "peak_mib", "pinned_ever_mib"},
    "many_regions": {"seconds", "end_over_beginning", "areas"},
}


@pytest.mark.skipif(os.environ.get("PINBUDDY_TEST_REAL") == "1", reason="the simulator counts")
@pytest.mark.parametrize("which", ["stock", "fork"])
@pytest.mark.parametrize("name", PRINTED)
def test_prints_its_figures(name, which):
    done = subprocess.run(
        [interpreter(which), f"{name}.py", "--quick"],
        cwd=HERE,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert PRINTED[name] <= figures.keys()
    assert all(isinstance(value, (int, float)) for value in figures.values())
