"""The comparison finds what differs, and nothing else; the list of clients is whole. Runs no client."""

import re
from copy import deepcopy

import pytest
from compare import Difference, complaints, differences, known
from runs import CLIENTS, HERE, SUCCESS, Ran
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
