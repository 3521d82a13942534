"""Runs the fork in the simulator, or on a real GPU; `cargo xtask test` starts pytest that way.

The settings below are read when torch is first imported, so they stand for every test of this process. Tests of other settings,
and comparisons with the official wheel, run a program of their own through ``run``.
"""

import functools
import json
import os
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import forked
import pytest
from device_plans import twice, with_plan, with_two  # noqa: F401: fixtures of all
from measure import environment, torch_folder
from plugin import IS_PLUGIN
from recorded import traced  # noqa: F401: a fixture of all
from release import COUNTS_WHAT_IS_ACTIVE, from_minor
from start import Zygote, shared, start, tells_words

BLOCK_MB, BLOCKS, THRESHOLD_MB = 64, 4, 1
os.environ["BUDDY_BLOCK_SIZE_MB"] = str(BLOCK_MB)
os.environ["BUDDY_BLOCK_COUNT"] = str(BLOCKS)
os.environ["BUDDY_THRESHOLD_MB"] = str(THRESHOLD_MB)
# So that each test knows what is pinned; background warm-up has its own tests.
os.environ["BUDDY_WARMUP"] = "sync"
# This machine's, if it has one.
os.environ["PINBUDDY_SITE"] = ""

MIB = 1 << 20
# Whether to run what explores, or proves a release rather than a change (`cargo xtask test --all`), and to start each program.
ALL = os.environ.get("PINBUDDY_TEST_ALL") == "1"
# torch's variable for settings; before 2.10 its name contained CUDA.
ALLOC_CONF = "PYTORCH_ALLOC_CONF"


def needs(minor: int, what: str):
    """Marks a test of what torch has from 2.`minor` on."""
    return pytest.mark.skipif(not from_minor(minor), reason=f"torch has {what} from 2.{minor} on")


# Marks a test of stock's counts of active memory.
counts_active = pytest.mark.skipif(not COUNTS_WHAT_IS_ACTIVE, reason="torch counts every free from 2.13 on, and did before 2.10")

# What programs of tests begin with.
IMPORTS = "from program import *\n"

# On a real GPU (tests/gpu/suites.py), and the reason why a test is skipped there.
REAL = os.environ.get("PINBUDDY_TEST_REAL") == "1"
ONLY_SIMULATED = "only the simulator can do this"

# Marks: the passes of `cargo xtask test` that a test is in (xtask/src/test/fork.rs), and how its programs start.
MARKS = [
    "timing: compares times; with the released library alone and nothing beside it; has three tries, or with again=False one",
    "release: depends on the library, so it is in the pass with the released one as well as in that with assertions",
    "fork_wheel: needs a torch that is a fork, and no plug-in; in the pass with the released library",
    "real_start(why): its programs import torch themselves, and are not forked",
    "whole_end(why): its programs end as after a real start, torch's own objects included",
    "slow(why): run only with `cargo xtask test --all`, or PINBUDDY_TEST_ALL=1",
    "simulated(why): skipped on a real GPU, beside tests whose programs set what is simulated (CHANGES_NOTHING)",
    "checkout(why): needs files of a checkout or an installed wheel; not in a run on a GPU (ci/gpu/pack.sh, tests/gpu/suites.py)",
]


def pytest_configure(config):
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    # Before processes of pytest-xdist's begin.
    shared()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if not ALL:
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    for item in items:
        if REAL and (mark := item.get_closest_marker("simulated")):
            item.add_marker(pytest.mark.skip(reason=f"{ONLY_SIMULATED}: {mark.args[0]}"))
        if item.get_closest_marker("fork_wheel"):
            # The pass with assertions has no timing tests, so they would not run at all.
            item.add_marker("release")
            item.add_marker(pytest.mark.skipif(IS_PLUGIN, reason="torch is no fork here"))
        if item.path.name.startswith("test_device_"):
            item.add_marker(needs(11, "the calls of its device allocator that plans and traces stand in front of"))
        timing = item.get_closest_marker("timing")
        if timing and timing.kwargs.get("again", True):
            item.obj = measured_again(item)
    # It takes minutes, most of which it waits: the other processes take the tests behind it.
    items.sort(key=lambda it: it.name != "test_nothing_is_lost_and_memory_does_not_creep")


TRIES = 3
AGAIN = pytest.StashKey[list]()


def measured_again(item):
    """The test, tried three times: a busy neighbour spoils one measurement, and what is slow is slow each time."""
    test = item.obj

    @functools.wraps(test)
    def tried(*arguments, **named):
        for _ in range(TRIES - 1):
            try:
                return test(*arguments, **named)
            except AssertionError as error:
                item.config.stash.setdefault(AGAIN, []).append((item.nodeid, str(error).partition("\n")[0]))
        return test(*arguments, **named)

    return tried


def pytest_terminal_summary(terminalreporter, config):
    for test, why in config.stash.get(AGAIN, []):
        terminalreporter.write_line(f"measured again: {test}: {why}")


def interpreter(which: str) -> str:
    """The Python with the fork, or with stock PyTorch."""
    path = sys.executable if which == "fork" else os.environ.get("PINBUDDY_STOCK_PYTHON")
    if not path:
        pytest.fail("PINBUDDY_STOCK_PYTHON does not name the official wheel's python; run the tests with `cargo xtask test`")
    return path


# The simulator's settings under which a program does what it does on a real GPU. Any other is of the simulator alone.
CHANGES_NOTHING = {f"PINBUDDY_SIM_{name}" for name in ("LOCK", "LOG", "QUIET", "SHARED")}


def skip_on_a_real_gpu(variables: dict, program: str = "") -> None:
    """Skips the test where there is a GPU and its program needs a simulated one."""
    settings = {name for name, value in variables.items() if name.startswith("PINBUDDY_SIM_") and value != ""}
    if REAL and ("sim()" in program or settings - CHANGES_NOTHING):
        pytest.skip(ONLY_SIMULATED)


class Outcome:
    """A program's output: its last line of standard output as JSON, and standard error."""

    def __init__(self, done: subprocess.CompletedProcess):
        self.returncode, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr

    @property
    def value(self):
        lines = self.stdout.strip().splitlines()
        return json.loads(lines[-1]) if lines and self.returncode == 0 else None

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.stderr.splitlines() if line.startswith("pinbuddy: ")]

    @property
    def quiet(self) -> "Outcome":
        """Itself, if the library said nothing."""
        assert self.warnings == [], self.stderr
        return self


def forking(which: str = "fork", by_words: bool = False) -> str:
    """An interpreter for others to start, by its path or as `python`: one that forks, where programs are forked. With `by_words`
    only one whose programs are known by their command lines."""
    python = interpreter(which)
    real = ALL or which == "fork" and not IS_PLUGIN or by_words and not tells_words(python)
    return python if real else str(Zygote.of(python).python)


def command_line(*arguments, python: str = sys.executable, check: bool = False, **variables: str) -> subprocess.CompletedProcess:
    """``python -m pinbuddy``, forked where programs are; ``check`` requires that it succeeds."""
    skip_on_a_real_gpu(variables)
    program = forked.program(["-m", "pinbuddy", *map(str, arguments)])
    done = start(python, program, environment(**variables), timeout=300, forked=IS_PLUGIN and not ALL)
    assert done.returncode == 0 or not check, done.stderr
    return done


def report(**variables: str) -> dict:
    """What the doctor says to machines; its exit status says the same."""
    done = command_line("doctor", "--json", **variables)
    said = json.loads(done.stdout)
    assert done.returncode == (not said["served"]), done.stderr
    return said


@pytest.fixture
def run(request):
    """``run(program, "fork" or "stock", VARIABLE=value)``: runs Python source in a process of its own, with no BUDDY_ variable but those
    given, and requires that it succeeds. Source that begins with no import begins with that of `program.py`."""
    may_fork = not ALL and not request.node.get_closest_marker("real_start")
    # A fork wheel's torch cannot be imported without the library.
    forks = {"stock": may_fork, "fork": may_fork and IS_PLUGIN}
    ends_wholly = request.node.get_closest_marker("whole_end") is not None

    def run(program: str, which: str = "fork", check: bool = True, **variables: str) -> Outcome:
        if not from_minor(10) and ALLOC_CONF in variables:
            variables["PYTORCH_CUDA_ALLOC_CONF"] = variables.pop(ALLOC_CONF)
        skip_on_a_real_gpu(variables, program)
        text, own = textwrap.dedent(program), environment(**variables)
        if not text.lstrip().startswith(("import ", "from ")):
            text = IMPORTS + text
        done = start(interpreter(which), text, own, 300, forks[which], ends_wholly)
        if check and done.returncode != 0:
            pytest.fail(f"{which} exited with {done.returncode}:\n{done.stderr}")
        return Outcome(done)

    return run


@pytest.fixture
def both(run):
    """``both(program, VARIABLE=value)``: the outcomes with stock and with the fork."""
    return lambda program, **variables: [run(program, which, **variables) for which in ("stock", "fork")]


@pytest.fixture
def plan(tmp_path):
    return tmp_path / "run.plan"


@pytest.fixture(scope="session")
def torch_folders() -> tuple[Path, Path]:
    """Stock's, and that of the fork or of the torch that has the plug-in."""
    return torch_folder(interpreter("stock")), torch_folder(sys.executable)


@pytest.fixture
def example(monkeypatch, capsys):
    """``example(name, VARIABLE=value)``: the lines of an example that runs itself; its programs are forked, where programs are."""
    folder = Path(__file__).parents[2] / "examples"
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "executable", str(forking()))
    monkeypatch.setattr(sys, "argv", ["example"])

    def example(name: str, **variables: str) -> list[str]:
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        runpy.run_path(str(folder / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return example


@pytest.fixture
def torch():
    """torch after a warm-up, with the cache emptied of earlier tests' blocks."""
    import gc

    import torch

    torch.empty(2 * MIB, pin_memory=True)
    gc.collect()
    torch.cuda.synchronize()
    torch._C._host_emptyCache()
    torch.cuda.reset_accumulated_host_memory_stats()
    yield torch
    from program import let_go

    let_go()


@pytest.fixture
def pinned(torch):
    """``pinned(bytes)``: a pinned byte tensor."""

    def pinned(size: int):
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    return pinned
