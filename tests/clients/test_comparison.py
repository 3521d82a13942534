"""The comparison finds what differs, and nothing else; the list of clients is whole. Runs no client."""

import re
from copy import deepcopy

import pytest
from compare import Difference, allowed, complaints, differences, known
from runs import CLIENTS, HERE, SUCCESS, Ran, exception, read, warnings
from test_faults import verdict

pytestmark = pytest.mark.quick
REPORT = {
    "results": {"data": "ab", "pinned": 8},
    "statistics": {"active_requests.freed": 9},
    "names": ["a", "b"],
    "peak_pinned": 96 << 20,
    "peak_active": 96 << 20,
    "pins": 3,
}


def ran(exit=SUCCESS, exception=None, warnings=(), **report) -> Ran:
    return Ran(exit, 2.0, deepcopy(REPORT) | report if exit == SUCCESS else None, set(warnings), exception)


def test_time_and_a_peak_within_bounds_are_no_differences():
    other = ran(peak_pinned=192 << 20, pins=1, peak_active=1)
    other.seconds = 99.0
    assert differences(ran(), other) == []
    assert (allowed(64, 32), allowed(64, 80)) == (128, 200)


def test_everything_that_differs_is_found():
    other = ran(warnings=["pinbuddy: b"], results={"data": "cd"}, peak_active=1, peak_pinned=(192 << 20) + 1)
    other.report |= {"statistics": {"active_requests.freed": 8}, "names": ["a", "c"]}
    assert list(map(str, differences(ran(warnings=["UserWarning: a"]), other))) == [
        "results of 'data': stock 'ab', here 'cd'",
        "results of 'pinned': stock 8, here 'not there'",
        "statistics of 'active_requests.freed': stock 9, here 8",
        "peak-pinned: stock '100663296, so that 201326592 are allowed', here 201326593",
        "statistics of 'names of statistics': stock ['b'], here ['c']",
        "warnings of 'UserWarning: a': stock 'said', here 'not said'",
        "warnings of 'pinbuddy: b': stock 'not said', here 'said'",
    ]


def test_where_the_end_differs_that_is_all():
    assert list(map(str, differences(ran(), ran("signal 11", warnings=["Traceback"])))) == ["exit: stock 'exit code 0', here 'signal 11'"]


def test_what_is_listed_is_allowed_and_has_to_be_there():
    listed = "[[difference]]\nclient = 'kv-pool'\nwhy = 'because'\n"
    entries = known(f"{listed}what = 'results'\nof = 'child'\n{listed}what = 'warnings'\nof = 'pinbuddy: '\nwith = 'fork'")
    child, said = Difference("results", 1, 2, "child"), Difference("warnings", "not said", "said", "pinbuddy: a region")
    assert complaints("kv-pool", "fork", [child, said], entries) == []
    assert complaints("kv-pool", "plug-in", [child, said], entries) == [str(said)]
    assert complaints("kv-pool", "fork", [said], entries) == ["results no longer differs: take it out of tests/clients/differences.toml"]
    other = Difference("results", 1, 2, "data")
    assert complaints("kv-pool", "plug-in", [child, other], entries) == [str(other)]
    assert complaints("loader-fork", "fork", [child], entries) == [str(child)]


@pytest.mark.parametrize("wrong", ["client = 'kv'\nwhat = 'exit'\nwhy = 'x'", "client = 'kv-pool'\nwhat = 'exit'\nwhy = ' '", "client = 'kv-pool'\nwhat = 'time'\nwhy = 'x'"])
def test_an_entry_has_a_client_a_kind_and_a_reason(wrong):
    with pytest.raises(ValueError, match="and why"):
        known(f"[[difference]]\n{wrong}")


def test_a_report_is_the_last_line():
    line = str(REPORT).replace("'", '"')
    assert read(f"said before\n{line}\n") == REPORT
    assert read("") is None and read("Traceback") is None and read(line.replace("peak_active", "peak_activ")) is None


def test_the_programs_exception_is_its_main_threads_whoever_else_notices():
    """A DataLoader's thread finds that the workers' pipes are closed after the program failed, or before Python says so."""
    main = (
        'Traceback (most recent call last):\n  File "loader.py", line 36, in program\n    for batch in loader:\n'
        "torch.AcceleratorError: Caught AcceleratorError in pin memory thread.\nOriginal Traceback (most recent call last):\n"
        '  File "x.py"\nRuntimeError: CUDA error: out of memory\n\n'
    )
    thread = 'Exception in thread Thread-1 (_pin_memory_loop):\nTraceback (most recent call last):\n  File "y.py"\nConnectionResetError: [Errno 104] x\n'
    worker = 'Process ForkProcess-2:\nTraceback (most recent call last):\n  File "z.py"\nEOFError\n'
    for text in (main, main + thread, f"{thread}{worker}\n{main}"):
        assert exception(text) == "torch.AcceleratorError"
    assert exception(thread + worker) is None and exception("terminate called\nError: x\n") is None
    chained = "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\nKeyboardInterrupt\n"
    assert exception(main + chained) == "KeyboardInterrupt"


def test_what_differs_from_run_to_run_is_not_compared():
    text = (
        "[W1122 20:17:55.1 a.cpp:7] Warning: x (function f)\n"
        "/venv/stock/lib/a.py:3: FutureWarning: at 0x7fab01, pid 17, in /tmp/tmpab_3/f'\n"
        "\n  0%|  | 0/3\r 33%|  | 1/3\n/out/x/y of Größe 3\n"
        "id ab5a7f3e-07c5-4c5b-9a55-0d1e6a2b8c9f, not ab5a7f3e-07c5\nframe #0: c10::Error::Error\n"
        "[W1122 20:18:01.22 a.cpp:7] Warning: x (function f)\n"
    )
    assert warnings(text, {"/venv/stock": "ENVIRONMENT", "/out/x": "WORK"}) == {
        " #%|  | #/#",
        "ENVIRONMENT/lib/a.py:#: FutureWarning: at #, pid #, in /tmp/#'",
        "  #%|  | #/#",
        "WORK/y of Größe #",
        "id #, not ab#a#f#e-#c#",
        "[W# #:#:#.# a.cpp:#] Warning: x (function f)",
    }


def test_under_a_fault_an_end_is_stocks_or_that_without_faults():
    met = ["cudaFree is made to answer #"]
    clean, survived, wrong = ran(results=1), ran(results=1, warnings=met), ran(results=2, warnings=met)
    failed, otherwise, killed = ran("exit code 1", "torch.AcceleratorError"), ran("exit code 1", "OSError"), ran("signal 11")
    for stock, fork, expected in [
        (clean, clean, "no call failed"),
        (failed, survived, "survived"),
        (failed, failed, "ended as stock"),
        (wrong, wrong, "survived"),
        (failed, otherwise, None),
        (failed, wrong, None),
        (survived, failed, None),
        (failed, killed, None),
        (survived, wrong, None),
    ]:
        assert verdict(clean, [stock], fork) == expected, f"{stock.end}; {fork.end}"
    assert verdict(clean, [clean, failed], failed) == "ended as stock", "any run of stock's may have ended so"
    assert (failed.end, killed.end) == ("exit code 1, torch.AcceleratorError", "signal 11, no exception")


def test_each_client_has_a_name_of_its_own_a_file_a_pinned_library_and_a_row_in_the_document():
    page = (HERE.parents[1] / "docs/clients.md").read_text()
    pins = [it for it in (HERE / "requirements.txt").read_text().splitlines() if not it.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", it) for it in pins) and not any(it.startswith("torch==") for it in pins)
    assert len({it.name for it in CLIENTS}) == len(CLIENTS) == 19
    for client in CLIENTS:
        assert (HERE / f"{client.file}.py").is_file() and f"| `{client.name}`" in page, client
        assert not client.library or any(it.startswith(f"{client.library}==") for it in pins), client
        # `cargo xtask test` has no libraries besides torch.
        assert not (client.quick and client.library), client
    assert sum(it.quick for it in CLIENTS) == 3
    for entry in known():
        assert f"| `{entry['client']}` | {entry['what']} |" in page, entry
