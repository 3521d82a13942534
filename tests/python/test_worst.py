"""The programs of `cargo xtask bench --only worst` run with either wheel, and print the judged figures."""

from pathlib import Path

import forked
import pytest

HERE = Path(__file__).parents[1] / "programs"
# One of each way to be judged that takes seconds; the benchmark runs all.
PRINTED = {
    "captures": {"seconds", "slowest", "pins", "peak_mib"},
    "random_large": {"pins", "peak_mib"},
    "growing_small": {"seconds", "pins", "peak_mib", "pinned_ever_mib"},
    "many_regions": {"seconds", "end_over_beginning", "areas"},
}
QUICK = ("captures", "growing_small")
SLOW = pytest.mark.slow("it is run as the others are, and by the benchmark")


@pytest.mark.simulated("it counts")
@pytest.mark.parametrize("which", ["stock", "fork"])
@pytest.mark.parametrize("name", [it if it in QUICK else pytest.param(it, marks=SLOW) for it in PRINTED])
def test_prints_its_figures(run, name, which):
    figures = run(forked.program([str(HERE / f"{name}.py"), "--quick"]), which).value
    assert PRINTED[name] <= figures.keys()
    assert all(isinstance(value, (int, float)) for value in figures.values())
