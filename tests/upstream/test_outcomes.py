"""What the suites read is read right: reports of processes that crash, and of GoogleTest. Runs nothing of PyTorch's."""

import json

from outcomes import NOT_RUN, PASSED, Run, read_googletest, read_googletest_log, read_report


def lines(*of) -> str:
    return "".join(json.dumps({"test": test, "id": f"m.C.{test}", "outcome": word, "detail": detail}) + "\n" for test, word, detail in of)


FIRST = lines(
    ("a", "started", ""), ("a", "passed", ""), ("b", "started", ""), ("b", "failed", "AssertionError: x"), ("b", "passed", ""), ("c", "started", "")
)


def test_what_crashed_stays_crashed_and_the_rest_goes_on():
    run = Run()
    assert read_report(run, FIRST + '{"test": "te', "signal 11"), "to be gone on with"
    assert run.outcomes == {"C.a": PASSED, "C.b": ("failed", "AssertionError: x"), "C.c": ("crashed", "signal 11")}
    assert run.served is None and run["C.d"] == NOT_RUN
    rest = lines(("d", "started", ""), ("d", "skipped", "no GPU")) + '{"served": 3, "planned": 7}\n'
    assert not read_report(run, FIRST + rest, "exit status 0"), "nothing new has crashed"
    assert (run["C.c"], run["C.d"]) == (("crashed", "signal 11"), ("skipped", "no GPU"))
    assert (run.served, run.planned) == (3, 7)


def test_googletest_says_what_it_did():
    text = """<testsuites><testsuite name="S">
        <testcase name="good" status="run" result="completed" classname="S" />
        <testcase name="bad" status="run" result="completed" classname="S"><failure message="file.cpp:3&#x0A;Expected: a" /></testcase>
        <testcase name="other" status="run" result="skipped" classname="S"><skipped message="file.cpp:9" /></testcase>
        <testcase name="off" status="notrun" result="suppressed" classname="S" /></testsuite></testsuites>"""
    assert read_googletest(text) == {"S.good": PASSED, "S.bad": ("failed", "file.cpp:3"), "S.other": ("skipped", "file.cpp:9"), "S.off": NOT_RUN}


def test_a_program_that_crashed_has_said_how_far_it_came():
    text = "[==========] Running 3 tests\n[ RUN      ] S.good\n[       OK ] S.good (3 ms)\n[ RUN      ] S.bad\n[  FAILED  ] S.bad (0 ms)\n[ RUN      ] S.crash\n"
    seen = read_googletest_log(text, ["S.good", "S.bad", "S.crash", "S.behind"], "signal 11")
    assert seen == {"S.good": PASSED, "S.bad": ("failed", ""), "S.crash": ("crashed", "signal 11"), "S.behind": NOT_RUN}
