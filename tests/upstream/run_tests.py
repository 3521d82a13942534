"""Run the tests of a PyTorch test file whose names match, and say how each ended.

    python run_tests.py FILE PATTERNS REPORT

FILE is PyTorch's, unchanged. The name of a test contains one of PATTERNS, with commas between them.
REPORT gets a line of JSON when a test starts and one when it ends, so that a crash names the test that it
happened in: {"test", "id", "outcome", "detail"}, outcome being one of started, passed, failed and
skipped. In a fork the last line says what its engine served: {"served": N}. Tests that REPORT names
already are left out, so that the same command goes on after a crash. The exit status says nothing; the
report does.
"""

import importlib.util
import json
import sys
import unittest
from pathlib import Path


class Report(unittest.TestResult):
    """Writes each outcome as soon as it is known."""

    def __init__(self, lines):
        super().__init__()
        self._lines = lines

    def write(self, **line):
        self._lines.write(json.dumps(line) + "\n")
        self._lines.flush()

    def _say(self, test, outcome, detail=""):
        name = test.id()
        self.write(test=name.rsplit(".", 1)[-1], id=name, outcome=outcome, detail=detail)

    def startTest(self, test):
        super().startTest(test)
        self._say(test, "started")

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


def engine_requests():
    """How many requests the fork's engine has served; None where torch is not a fork."""
    try:
        import pinbuddy
    except ImportError:
        return None
    return pinbuddy.stats()["engine"]["hits"] if pinbuddy.enabled() else 0


def reported(report):
    """The tests that an earlier process has started."""
    if not Path(report).exists():
        return set()
    lines = Path(report).read_text().splitlines()
    # The last line of a process that was stopped may be cut.
    whole = [json.loads(line) for line in lines if line.endswith("}")]
    return {line.get("id") for line in whole}


def main(file, patterns, report):
    path = Path(file).resolve()
    # The file's own name, because PyTorch's test helpers look for the module they test.
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.argv = [str(path)]
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{it}*" for it in patterns.split(",")]
    done = reported(report)
    with open(report, "a") as lines:
        result = Report(lines)
        # Not loadTestsFromModule, which would ask upstream's own load_tests for a shard.
        # A dictionary, because a class can have two names, and each is to run once.
        cases = {it: None for it in vars(module).values() if isinstance(it, type)}
        for case in cases:
            if issubclass(case, unittest.TestCase):
                tests = loader.loadTestsFromTestCase(case)
                unittest.TestSuite(it for it in tests if it.id() not in done).run(result)
        served = engine_requests()
        if served is not None:
            result.write(served=served)


if __name__ == "__main__":
    main(*sys.argv[1:])
