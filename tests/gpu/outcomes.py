"""A pytest plug-in that writes a line of JSON after each test to the file that OUTCOMES names, so that the results
of a stopped run are known. ``pytest -p outcomes``"""

import json
import os

import pytest


class Writer:
    """In the process that collects what the others report."""

    def __init__(self, file: str):
        self._lines = open(file, "w")

    def pytest_collectreport(self, report):
        # A file that cannot be imported has tests that nobody would miss.
        if report.failed:
            detail = str(report.longrepr).strip().splitlines()[-1] if report.longrepr else ""
            print(json.dumps({"test": report.nodeid, "outcome": "failed", "detail": detail[:300]}), file=self._lines, flush=True)

    def pytest_runtest_logreport(self, report):
        # A test that passes has three parts; of its setup and teardown only failures and skips count.
        if report.when != "call" and report.passed:
            return
        detail = ""
        if report.failed:
            detail = str(report.longrepr).strip().splitlines()[-1] if report.longrepr else ""
        elif report.skipped:
            detail = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
        line = {"test": report.nodeid, "outcome": report.outcome, "detail": detail[:300]}
        print(json.dumps(line), file=self._lines, flush=True)


@pytest.hookimpl
def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Writer(os.environ["OUTCOMES"]))
