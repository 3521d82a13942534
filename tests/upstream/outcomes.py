"""Runs PyTorch's tests with one interpreter and settings, and says how each ended.

An outcome is a pair: passed, failed, skipped, crashed or "did not run"; and the first line of the reason. Tests have the names
`Class.test`. The runs of a session are kept, since several tests look at each.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from compiled import CPP_TEST, HERE, OUT, PYTHON_TEST, allocator_test
from googletest import words_of

# Whether to run what explores, or proves a release rather than a change (`cargo xtask test --all`).
ALL = os.environ.get("PINBUDDY_TEST_ALL") == "1"
LOGS = OUT / "logs"
PASSED = ("passed", "")
NOT_RUN = ("did not run", "")
# The most processes; with more crashes everything is broken.
PROCESSES = 6
# A caller's settings that would change what is tested.
CLEARED = ("BUDDY_", "PYTORCH_", "PYTHON")


@dataclass
class Run:
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)
    # How many requests the engine served, and the plan of device memory; None where nothing could be asked.
    served: int | None = None
    planned: int | None = None
    output: str = ""
    # Of the C++ test and of test_cuda.py, where both ran.
    parts: tuple[str, ...] = ()

    def __getitem__(self, test: str) -> tuple[str, str]:
        return self.outcomes.get(test, NOT_RUN)


@dataclass(frozen=True)
class Choice:
    """Of the tests in test_cuda.py: parts of names; parts of those that run behind all others; whole names that do not run."""

    patterns: tuple[str, ...]
    last: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def names(self, test: str) -> bool:
        """Whether a pattern is part of its name."""
        return any(fnmatchcase(test, f"*{pattern}*") for pattern in self.patterns)


@dataclass(frozen=True)
class Bench:
    """PyTorch's tree of tests, and how long a process may take: more than 8 GiB that are pinned for real need on a slow machine,
    on a GPU than the hundreds of optimizer tests in graphs."""

    tree: Path
    limit: int
    # A folder with what test_cuda.py imports besides torch, so that the environments do not change.
    packages: str = ""

    def environment(self, **settings: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(CLEARED)}
        more = {"PINBUDDY_SIM_QUIET": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        preload = ":".join(filter(None, [kept.get("LD_PRELOAD"), settings.get("LD_PRELOAD")]))
        return kept | more | settings | ({"LD_PRELOAD": preload} if preload else {})

    def call(self, command: list[str], log: Path, cwd: Path | None = None, **settings: str) -> tuple[str, bool]:
        """How it ended, and whether it was stopped; its output is in `log`."""
        with log.open("w") as output:
            try:
                done = subprocess.run(
                    command, cwd=cwd, env=self.environment(**settings), timeout=self.limit,
                    stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return f"stopped after {self.limit} s", True
        return f"exit status {done.returncode}" if done.returncode >= 0 else f"signal {-done.returncode}", False

    def listed(self, python: str, choice: Choice) -> list[str]:
        """The tests of a choice, by an interpreter with torch."""
        return [it for it in self._all(python) if choice.names(it) and it.rpartition(".")[2] not in choice.without]

    @functools.cache
    def _all(self, python: str) -> list[str]:
        """Those of the file: once, since its imports take seconds."""
        command = self._command(python, Choice(("",)), "--list")
        done = subprocess.run(command, env=self.environment(PYTHONPATH=self._python_path()), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{self.tree / PYTHON_TEST} cannot be listed with {python}:\n{done.stderr}")
        # Without the module.
        return [it.partition(".")[2] for it in json.loads(done.stdout.splitlines()[-1])]

    def _command(self, python: str, choice: Choice, report: str) -> list[str]:
        names = [",".join(it) for it in (choice.patterns, choice.last, choice.without)]
        return [python, str(HERE / "run_tests.py"), str(self.tree / PYTHON_TEST), names[0], report, *names[1:]]

    def _python_path(self) -> str:
        folders = [self.packages, str((self.tree / PYTHON_TEST).parent)]
        return os.pathsep.join(filter(None, folders))

    def python(self, title: str, python: str, choice: Choice, **settings: str) -> Run:
        """test_cuda.py's tests. After a crash the next process goes on behind the test that crashed."""
        report, work = LOGS / f"{title}.json", LOGS / f"{title}.work"
        report.unlink(missing_ok=True)
        shutil.rmtree(work, ignore_errors=True)
        # Upstream's tests write files to the current folder.
        work.mkdir(parents=True)
        settings["PYTHONPATH"] = self._python_path()
        run = Run()
        for part in range(1, PROCESSES + 1):
            log = LOGS / f"{title}.{part}.log"
            how, stopped = self.call(self._command(python, choice, str(report)), log, work, **settings)
            crashed = read_report(run, report.read_text() if report.exists() else "", how)
            run.output += log.read_text(errors="replace")
            if stopped or not crashed:
                break
        shutil.rmtree(work)
        return run

    def cpp(self, title: str, program: Path, names: list[str], **settings: str) -> Run:
        """A program of GoogleTest's, whose tests are known by name. It writes its report at its end: if it crashes, its lines tell."""
        LOGS.mkdir(parents=True, exist_ok=True)
        report, log = LOGS / f"{title}.xml", LOGS / f"{title} C++.log"
        report.unlink(missing_ok=True)
        how, _ = self.call([str(program), f"--gtest_output=xml:{report}"], log, **settings)
        if report.exists():
            outcomes = read_googletest(report.read_text())
        else:
            outcomes = read_googletest_log(log.read_text(errors="replace"), names, how)
        output = log.read_text(errors="replace")
        served = re.findall("^pinbuddy stats: (.*)$", output, re.MULTILINE)
        return Run(outcomes, json.loads(served[-1])["engine"]["hits"] if served else None, output=output)

    def cpp_tests(self) -> list[str]:
        """`TEST(Suite, name)` of PyTorch's C++ test, as `Suite.name`."""
        text = (self.tree / CPP_TEST).read_text()
        return [f"{suite}.{name}" for suite, name in re.findall(r"^\s*TEST\((\w+),\s*(\w+)\)", text, re.MULTILINE)]


def read_report(run: Run, text: str, how: str) -> bool:
    """Takes over what run_tests.py has written so far; whether another test has crashed. What crashed stays crashed, and a
    failed test stays failed if its teardown passes."""
    known = {test for test, (word, _) in run.outcomes.items() if word == "crashed"}
    outcomes, counts = {}, {}
    for line in text.splitlines():
        # The last line of a stopped process may be cut off.
        if not line.endswith("}"):
            continue
        line = json.loads(line)
        if "test" not in line:
            counts = {name: counts.get(name, 0) + value for name, value in line.items()}
            continue
        test, word = line["id"].partition(".")[2], line["outcome"]
        if not (word == "passed" and outcomes.get(test, PASSED)[0] == "failed"):
            outcomes[test] = {"started": ("crashed", how), "passed": PASSED}.get(word, (word, line["detail"]))
    run.outcomes |= {test: outcome for test, outcome in outcomes.items() if test not in known}
    run.served, run.planned = counts.get("served"), counts.get("planned")
    return any(word == "crashed" and test not in known for test, (word, _) in outcomes.items())


def read_googletest(text: str) -> dict[str, tuple[str, str]]:
    """Outcomes by GoogleTest's own report."""
    outcomes = {}
    for case in xml.etree.ElementTree.fromstring(text).iter("testcase"):
        outcome = PASSED
        for tag, word in (("skipped", "skipped"), ("failure", "failed")):
            for child in case.iter(tag):
                outcome = (word, child.get("message", "").partition("\n")[0])
        if case.get("status") != "run":
            outcome = NOT_RUN
        outcomes[f"{case.get('classname')}.{case.get('name')}"] = outcome
    return outcomes


def read_googletest_log(text: str, names: list[str], how: str) -> dict[str, tuple[str, str]]:
    """Outcomes of a program that wrote no report: those that ended before, the one that crashed, and those that did not run."""
    said = {test: (word, how if word == "crashed" else "") for test, word in words_of(text).items()}
    return dict.fromkeys(names, NOT_RUN) | said


class Pinned:
    """The C++ test and those of test_cuda.py together, in several configurations, each once."""

    def __init__(self, bench: Bench, choice: Choice):
        self.bench, self.choice = bench, choice

    @functools.cache
    def run(self, title: str, python: str, torch, settings: tuple[tuple[str, str], ...] = ()) -> Run:
        settings, names = dict(settings), self.bench.cpp_tests()
        cpp = self.bench.cpp(title, allocator_test(torch, self.bench.tree), names, **settings)
        run = self.bench.python(title, python, self.choice, **settings)
        # Both parts must have used it.
        served = min(cpp.served or 0, run.served or 0)
        return Run(cpp.outcomes | run.outcomes, served, output=cpp.output + run.output, parts=(cpp.output, run.output))
