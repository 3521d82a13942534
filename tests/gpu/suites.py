"""Test suites as stages. Each writes {"runs": {WAY: {TEST: OUTCOME}}}, also if it is stopped.

`ours` is tests/python, `gpu` this folder, `cpp` and `python` PyTorch's own tests of pinned memory, with stock
beside each configuration of ours. OUTCOME is a pair: passed, failed, skipped, crashed or not run, and why.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import measuring
from ways import Way

HERE = Path(__file__).parent
TESTS = HERE.parent
sys.path.append(str(TESTS / "upstream"))

from googletest import words_of  # noqa: E402

# PyTorch's requests are below the default threshold; only the second configuration sends them through the engine.
CONFIGURATIONS = {
    "stock": ("stock", {}),
    "ours": ("ours", {}),
    "ours, all through the engine": ("ours", {"BUDDY_THRESHOLD_MB": 0, "BUDDY_BLOCK_SIZE_MB": 64, "BUDDY_BLOCK_COUNT": 2}),
}
# Of a test behind which the stage was stopped.
NOT_RUN = "not run"
# The most processes per configuration; with more crashes everything is broken.
PROCESSES = 6


def pytest(it: measuring.Fixture, folder: Path, *options: str) -> None:
    """Runs a folder's tests with ours; they compare with stock."""
    ours, stock = (_environment(it.ways[name], it.out.with_suffix(f".{name}")) for name in ("ours", "stock"))
    lines = it.out.with_suffix(".lines")
    environment = it.ways["ours"].environment(OUTCOMES=lines, PINBUDDY_STOCK_PYTHON=stock, PINBUDDY_TEST_REAL=int(not it.simulated))
    # No plug-ins of this machine, but `outcomes`.
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(HERE)}
    command = [ours, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xdist", "-p", "outcomes", *options, "."]
    try:
        done = subprocess.run(command, cwd=folder, env=environment)
    finally:
        outcomes = _read(lines)
        it.write({"runs": {"ours": outcomes}})
    # 1: some tests failed, as the outcomes say. Otherwise there may be no outcomes.
    if done.returncode not in (0, 1) or not outcomes:
        raise RuntimeError(f"pytest ended with status {done.returncode} after {len(outcomes)} tests")


def _environment(way: Way, folder: Path) -> str:
    """The interpreter of an environment with an allocator's packages before those of `way.python`: tests set each program's
    variables, PYTHONPATH among them, so what makes it stock or ours has to lie in the interpreter."""
    if not way.packages:
        return way.python
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def paths(*options: str) -> list[str]:
        command = [way.python, *options, "-c", "import sys; print(*sys.path[1:], sep='\\n')"]
        return subprocess.run(command, env=inherited, capture_output=True, text=True, check=True).stdout.splitlines()

    library = paths("-S")
    subprocess.run([way.python, "-m", "venv", "--without-pip", str(folder)], env=inherited, check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "way.pth").write_text("\n".join([*way.packages, *(it for it in paths() if it not in library)]) + "\n")
    return str(folder / "bin/python")


def _read(lines: Path) -> dict:
    """The outcome of each test. A failed test stays failed if its teardown passes."""
    outcomes: dict[str, list[str]] = {}
    collected: list[str] = []
    for line in lines.read_text().splitlines() if lines.exists() else []:
        try:
            it = json.loads(line)
        except json.JSONDecodeError:
            # The last line of a stopped process may be cut off.
            continue
        collected = it.get("collected", collected)
        if "test" not in it:
            continue
        outcome = ["crashed", ""] if it["outcome"] == "started" else [it["outcome"], it["detail"]]
        before = outcomes.get(it["test"], ["", ""])
        if not (before[0] == "failed" and outcome[0] == "passed"):
            outcomes[it["test"]] = outcome
    return outcomes | {test: [NOT_RUN, ""] for test in collected if test not in outcomes}


def cpp(it: measuring.Fixture) -> None:
    """PyTorch's C++ test of the allocator in each configuration."""
    program = it.programs / "cuda_caching_host_allocator_test"
    runs = {}
    for title, (way, settings) in CONFIGURATIONS.items():
        done = subprocess.run([program, "--gtest_color=no"], env=it.ways[way].for_cpp(**settings), capture_output=True, text=True)
        print(done.stdout, done.stderr, sep="\n", flush=True)
        runs[title] = {name: [word, ""] for name, word in words_of(done.stdout).items()}
        if not runs[title]:
            raise RuntimeError(f"{program} ran no test with {title}, status {done.returncode}")
        it.write({"runs": runs})


def python(it: measuring.Fixture) -> None:
    """Tests of test_cuda.py, in all configurations at the same time; in the simulator only its pinned-memory tests."""
    # torch.testing imports numpy, which a pack cannot contain for every Python.
    if subprocess.run([it.ways["stock"].python, "-c", "import numpy"], env=it.ways["stock"].environment()).returncode:
        raise RuntimeError("numpy is not installed here, and torch.testing imports it")
    folder = it.programs.parent / "pytorch"
    patterns = json.loads((folder / "patterns.json").read_text())["pinned" if it.simulated else "gpu"]
    threads = [threading.Thread(target=_run_python, args=(it, folder, patterns, title), daemon=True) for title in CONFIGURATIONS]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        runs = {title: _read(_lines(it, title)) for title in CONFIGURATIONS}
        it.write({"runs": runs})
    if not all(runs.values()):
        raise RuntimeError(f"no test ran with {[title for title, outcomes in runs.items() if not outcomes]}")


def _lines(it: measuring.Fixture, title: str) -> Path:
    return it.out.with_suffix(f".{title.replace(',', '').replace(' ', '-')}.lines")


def _run_python(it: measuring.Fixture, folder: Path, patterns: list[str], title: str) -> None:
    way, settings = CONFIGURATIONS[title]
    lines = _lines(it, title)
    environment = it.ways[way].environment(**settings)
    environment["PYTHONPATH"] = os.pathsep.join([*it.ways[way].packages, str(folder)])
    work = lines.with_suffix(".work")
    work.mkdir(exist_ok=True)
    command = [it.ways[way].python, str(TESTS / "upstream" / "run_tests.py")]
    command += [str(folder / "test_cuda.py"), ",".join(patterns), str(lines)]
    # After a crash the next process continues behind the crashed test.
    for _ in range(PROCESSES):
        if subprocess.run(command, cwd=work, env=environment).returncode == 0:
            return


def broken(runs: dict) -> list[str]:
    """Failures and crashes with ours, except tests that stock has run and not passed either."""
    stock = runs.get("stock")
    wrong = []
    for title, outcomes in runs.items():
        for test, (outcome, detail) in outcomes.items():
            passes = stock is None or stock.get(test, ["passed"])[0] == "passed"
            if title != "stock" and outcome in ("failed", "crashed") and passes:
                wrong.append(f"{test} {outcome} with {title}: {' '.join(detail.split())}".rstrip(": "))
    return wrong


def _processes(it: measuring.Fixture, most: int) -> str:
    return str(2 if it.simulated else max(2, min(most, len(os.sched_getaffinity(0)) - 2)))


def ours(it: measuring.Fixture) -> None:
    pytest(it, TESTS / "python", "-m", "not timing and not checkout", "-n", _processes(it, 14))


def gpu(it: measuring.Fixture) -> None:
    pytest(it, HERE, "-n", _processes(it, 4))
