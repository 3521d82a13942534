"""A pytest plug-in that writes a line of JSON after each test to the file that OUTCOMES names, so that the results
of a stopped run are known. ``pytest -p outcomes``"""

import json
import os
from pathlib import Path

import pytest


# Of a longer text this much of its beginning, which says what was compared, and of its end, which has a program's error.
BEGINS, ENDS = 200, 300


def why(report) -> str:
    """Where a test failed and the assertion's text, or why it was skipped."""
    if report.skipped:
        return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = f"{Path(crash.path).name}:{crash.lineno}: {crash.message}" if crash else str(report.longrepr or "").strip()
    return text if len(text) <= BEGINS + ENDS else f"{text[:BEGINS]} ... {text[-ENDS:]}"


class Writer:
    """In the process that collects what the others report."""

    def __init__(self, file: str):
        self._lines = open(file, "w")

    def pytest_collectreport(self, report):
        # A file that cannot be imported has tests that nobody would miss.
        if report.failed:
            self._write(test=report.nodeid, outcome="failed", detail=why(report))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids):
        # Each process says so; a stopped run shows by it what did not run.
        self._write(collected=ids)

    def pytest_runtest_logreport(self, report):
        # A test that passes has three parts; of its setup and teardown only failures and skips count.
        if report.when != "call" and report.passed:
            return
        self._write(test=report.nodeid, outcome=report.outcome, detail="" if report.passed else why(report))

    def _write(self, **line):
        print(json.dumps(line), file=self._lines, flush=True)


@pytest.hookimpl
def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Writer(os.environ["OUTCOMES"]))
