"""Run the tests of a PyTorch test file whose names match, and say how each ended.

    python run_tests.py FILE PATTERNS REPORT [LAST [WITHOUT]]

FILE is PyTorch's, unchanged. The name of a test contains one of PATTERNS, with commas between them. Tests whose
names contain one of LAST run behind all others; those named in WITHOUT do not run.
REPORT gets a line of JSON when a test starts and one when it ends, so that a crash names the test that it
happened in: {"test", "id", "outcome", "detail"}, outcome being one of started, passed, failed and
skipped. In a fork the last line says what its engine served in the tests, and the plan of its device memory: {"served": N,
"planned": N}. Tests that REPORT names already are left out, so that the same command goes on after a crash. The program
that PINBUDDY_BEFORE_EACH names runs before each of them. The exit status says nothing; the report does. With `--list` in
REPORT's place the tests are only listed, as JSON, on the last line of standard output.
"""

import gc
import importlib.util
import json
import os
import runpy
import sys
import unittest
from pathlib import Path


class Report(unittest.TestResult):
    """Writes each outcome as soon as it is known."""

    def __init__(self, lines):
        super().__init__()
        self._lines = lines
        self._failed = False
        # What the plan has served of the programs that ran before tests.
        self.before_tests = 0

    def write(self, **line):
        self._lines.write(json.dumps(line) + "\n")
        self._lines.flush()

    def _say(self, test, outcome, detail=""):
        name = test.id()
        self.write(test=name.rsplit(".", 1)[-1], id=name, outcome=outcome, detail=detail)

    def startTest(self, test):
        super().startTest(test)
        self._say(test, "started")
        if program := os.environ.get("PINBUDDY_BEFORE_EACH"):
            before = served()["planned"]
            runpy.run_path(program, run_name="__main__")
            self.before_tests += served()["planned"] - before

    def stopTest(self, test):
        super().stopTest(test)
        if self._failed:
            # What the traceback held is not to be there in the next test.
            self._failed = False
            gc.collect()

    def addSuccess(self, test):
        self._say(test, "passed")

    def addSkip(self, test, reason):
        self._say(test, "skipped", reason)

    def addFailure(self, test, error):
        self._fail(test, error)

    def addError(self, test, error):
        self._fail(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self._fail(test, error)

    def addExpectedFailure(self, test, error):
        self._say(test, "passed", "failed as upstream expects")

    def addUnexpectedSuccess(self, test):
        self._say(test, "failed", "passed although upstream expects it to fail")

    def _fail(self, test, error):
        print(self._exc_info_to_string(error, test), file=sys.stderr)
        kind, value, _ = error
        first = next(iter(str(value).strip().splitlines()), "")
        self._say(test, "failed", f"{kind.__name__}: {first}")
        self._failed = True


def served():
    """How many requests the fork's engine and the plan of device memory have served; None where torch is not a fork."""
    try:
        import pinbuddy
    except ImportError:
        return None
    stats = pinbuddy.stats() if pinbuddy.enabled() else {}
    planned = sum(stream["hits"] + stream["borrowed"] for stream in stats.get("device") or [])
    return {"served": stats["engine"]["hits"] if stats else 0, "planned": planned}


def named(test, patterns):
    """Whether the name of a test contains one of them."""
    return any(it and it in test.id() for it in patterns)


def reported(report):
    """The tests that an earlier process has started."""
    if not Path(report).exists():
        return set()
    lines = Path(report).read_text().splitlines()
    # The last line of a process that was stopped may be cut.
    whole = [json.loads(line) for line in lines if line.endswith("}")]
    return {line.get("id") for line in whole}


def main(file, patterns, report, last="", without=""):
    path = Path(file).resolve()
    # The file's own name, because PyTorch's test helpers look for the module they test.
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.argv = [str(path)]
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{it}*" for it in patterns.split(",")]
    left_out = without.split(",")
    # Not loadTestsFromModule, which would ask upstream's own load_tests for a shard.
    # A dictionary, because a class can have two names, and each is to run once.
    cases = {it: None for it in vars(module).values() if isinstance(it, type)}
    tests = [list(loader.loadTestsFromTestCase(it)) for it in cases if issubclass(it, unittest.TestCase)]
    tests = [[it for it in of_one if it.id().rsplit(".", 1)[-1] not in left_out] for of_one in tests]
    if report == "--list":
        print(json.dumps([it.id() for of_one in tests for it in of_one]))
        return
    done = reported(report)
    with open(report, "a") as lines:
        result = Report(lines)
        for late in (False, True):
            for of_one_class in tests:
                unittest.TestSuite(
                    it for it in of_one_class if named(it, last.split(",")) == late and it.id() not in done
                ).run(result)
        counts = served()
        if counts is not None:
            result.write(**counts | {"planned": counts["planned"] - result.before_tests})


if __name__ == "__main__":
    main(*sys.argv[1:])
