"""Test suites as stages: `suites.py RIG OUT ours|gpu|cpp|python`. Writes {"runs": {WAY: {TEST: OUTCOME}}}, also
where it is stopped.

`ours` is tests/python, `gpu` this folder, `cpp` and `python` PyTorch's own tests of pinned memory, with stock
beside each configuration of ours. OUTCOME is a pair: passed, failed, skipped or crashed, and why.
"""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import rig
from ways import Way

HERE = Path(__file__).parent
TESTS = HERE.parent
# All of PyTorch's requests are below the default threshold; only the second sends them through the engine.
CONFIGURATIONS = {
    "stock": ("stock", {}),
    "ours": ("ours", {}),
    "ours, all through the engine": (
        "ours",
        {"BUDDY_THRESHOLD_MB": 0, "BUDDY_BLOCK_SIZE_MB": 64, "BUDDY_BLOCK_COUNT": 2},
    ),
}
# Processes of one configuration at most: crashes beyond that are one thing that is wrong with all of it.
PROCESSES = 6


def pytest(it: rig.Rig, folder: Path, *options: str) -> None:
    """A folder's tests with ours; what they compare with is stock."""
    way = it.ways["ours"]
    stock = _wrapper(it.ways["stock"], it.out.with_suffix(".stock-python"))
    lines = it.out.with_suffix(".lines")
    real = 0 if it.simulated else 1
    environment = way.environment(OUTCOMES=lines, PINBUDDY_STOCK_PYTHON=stock, PINBUDDY_TEST_REAL=real)
    # Plug-ins that the machine has besides are for another pytest.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # `outcomes` is found here.
    environment["PYTHONPATH"] = os.pathsep.join([*way.packages, str(HERE)])
    command = [way.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xdist", "-p", "outcomes"]
    command += [*options, "."]
    try:
        done = subprocess.run(command, cwd=folder, env=environment)
    finally:
        outcomes = _read(lines)
        it.write({"runs": {"ours": outcomes}})
    # 1: tests failed, which the outcomes say; anything else, and there may be none.
    if done.returncode not in (0, 1) or not outcomes:
        raise RuntimeError(f"pytest ended with status {done.returncode} after {len(outcomes)} tests")


def _wrapper(way: Way, file: Path) -> Path:
    """A program that is that way's interpreter, for tests that know an interpreter only."""
    variables = "".join(f"export {name}={value}\n" for name, value in way.variables.items())
    packages = f"export PYTHONPATH='{os.pathsep.join(way.packages)}'\n" if way.packages else "unset PYTHONPATH\n"
    file.write_text(f"#!/bin/sh\n{packages}{variables}exec '{way.python}' \"$@\"\n")
    file.chmod(0o755)
    return file


def _read(lines: Path) -> dict:
    """The outcome of each test. One that failed and was then torn down without complaint has failed."""
    outcomes: dict[str, list[str]] = {}
    for line in lines.read_text().splitlines() if lines.exists() else []:
        try:
            it = json.loads(line)
        except json.JSONDecodeError:
            # The last line of a process that was stopped.
            continue
        if "test" not in it:
            continue
        outcome = ["crashed", ""] if it["outcome"] == "started" else [it["outcome"], it["detail"]]
        before = outcomes.get(it["test"], ["", ""])
        if not (before[0] == "failed" and outcome[0] == "passed"):
            outcomes[it["test"]] = outcome
    return outcomes


def cpp(it: rig.Rig) -> None:
    """PyTorch's C++ test of the allocator in each configuration."""
    program = it.programs / "cuda_caching_host_allocator_test"
    runs = {}
    for title, (way, settings) in CONFIGURATIONS.items():
        command = [str(program), "--gtest_color=no"]
        environment = it.ways[way].for_cpp(**settings)
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        print(done.stdout, done.stderr, sep="\n", flush=True)
        runs[title] = of_gtest(done.stdout)
        if not runs[title]:
            raise RuntimeError(f"{program} ran no test with {title}, status {done.returncode}")
        it.write({"runs": runs})


def of_gtest(output: str) -> dict:
    """How each test ended, by GoogleTest's own lines; one that started and did not end has crashed."""
    words = {"RUN": "crashed", "OK": "passed", "SKIPPED": "skipped", "FAILED": "failed"}
    outcomes = {}
    for tag, name in re.findall(r"^\[ +(RUN|OK|SKIPPED|FAILED) +\] (\w+\.\w+)", output, re.MULTILINE):
        outcomes[name] = [words[tag], ""]
    return outcomes


def python(it: rig.Rig) -> None:
    """Those of test_cuda.py, in all configurations side by side; its pinned-memory tests alone in the simulator."""
    # torch.testing imports it, and no pack can bring it for every Python.
    if subprocess.run([it.ways["stock"].python, "-c", "import numpy"], env=it.ways["stock"].environment()).returncode:
        raise RuntimeError("numpy is not installed here, and torch.testing imports it")
    folder = it.programs.parent / "pytorch"
    patterns = json.loads((folder / "patterns.json").read_text())["pinned" if it.simulated else "gpu"]
    threads = [
        threading.Thread(target=_run_python, args=(it, folder, patterns, title), daemon=True)
        for title in CONFIGURATIONS
    ]
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


def _lines(it: rig.Rig, title: str) -> Path:
    return it.out.with_suffix(f".{title.replace(',', '').replace(' ', '-')}.lines")


def _run_python(it: rig.Rig, folder: Path, patterns: list[str], title: str) -> None:
    way, settings = CONFIGURATIONS[title]
    lines = _lines(it, title)
    environment = it.ways[way].environment(**settings)
    environment["PYTHONPATH"] = os.pathsep.join([*it.ways[way].packages, str(folder)])
    work = lines.with_suffix(".work")
    work.mkdir(exist_ok=True)
    command = [it.ways[way].python, str(TESTS / "upstream" / "run_tests.py")]
    command += [str(folder / "test_cuda.py"), ",".join(patterns), str(lines)]
    # A crash takes the process down, and the next one goes on behind it.
    for _ in range(PROCESSES):
        if subprocess.run(command, cwd=work, env=environment).returncode == 0:
            return


def broken(runs: dict) -> list[str]:
    """What is wrong with ours: what failed or crashed there, unless stock has run it and not passed it either."""
    stock = runs.get("stock")
    wrong = []
    for title, outcomes in runs.items():
        for test, (outcome, detail) in outcomes.items():
            passes = stock is None or stock.get(test, ["passed"])[0] == "passed"
            if title != "stock" and outcome in ("failed", "crashed") and passes:
                wrong.append(f"{test} {outcome} with {title}: {detail}".rstrip(": "))
    return wrong


SUITES = {
    "ours": lambda it: pytest(it, TESTS / "python", "-m", "not timing", "-n", _processes(it)),
    "gpu": lambda it: pytest(it, HERE, "-n", _processes(it)),
    "cpp": cpp,
    "python": python,
}


def _processes(it: rig.Rig) -> str:
    return str(2 if it.simulated else max(2, min(8, len(os.sched_getaffinity(0)) // 2)))


def measure(it: rig.Rig) -> None:
    SUITES[sys.argv[3]](it)


if __name__ == "__main__":
    rig.main(measure)
