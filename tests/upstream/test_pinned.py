"""PyTorch's own tests of pinned memory, unchanged: what passes with the official wheel passes with the fork.

They are the C++ allocator test and test_cuda.py's tests of pinned memory, on a real GPU also those of graphs and copies. In the
simulator a failure with stock has to be explained (pinned.toml), since it could hide a failure of the fork.
"""

import pytest
from conftest import named_in_source
from outcomes import ALL, NOT_RUN, PASSED

# Upstream's requests are below the default threshold, so only the second configuration sends them through the engine.
ENGINE = "fork, all through the engine"
FORK = {
    "fork": {},
    ENGINE: {"BUDDY_THRESHOLD_MB": "0", "BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "2"},
}
if ALL:
    FORK["fork, disabled"] = {"BUDDY_DISABLE": "1"}


def test_stock_passes_or_it_is_known_why_not(upstream, pinned_test):
    outcome = upstream.run("stock", upstream.stock)[pinned_test]
    assert outcome != NOT_RUN
    if upstream.real or upstream.named:
        # Failures are the machine's, or the tree's; what was skipped or has failed tells nothing about the fork.
        return
    why = [it["why"] for it in upstream.known["fails"] if pinned_test.rpartition(".")[2] in it["tests"]]
    if why and outcome[0] == "failed":
        pytest.xfail(why[0])
    assert outcome == PASSED
    assert not why, "it passes: take it out of tests/upstream/pinned.toml"


@pytest.mark.parametrize("title", FORK)
def test_what_passes_with_stock_passes_with_the_fork(upstream, pinned_test, title):
    stock = upstream.run("stock", upstream.stock)[pinned_test]
    outcome = upstream.run(title, upstream.fork, **FORK[title])[pinned_test]
    if stock != PASSED:
        pytest.skip(f"stock {stock}, fork {outcome}")
    assert outcome == PASSED, f"{outcome} with {title}, and passes with the official wheel"


def test_the_engine_has_served_in_both_languages(upstream):
    assert upstream.run(ENGINE, upstream.fork, **FORK[ENGINE]).served > 0


def test_some_pass_with_stock(upstream):
    outcomes, cpp = upstream.run("stock", upstream.stock).outcomes, upstream.bench.cpp_tests()
    passed = {test for test, outcome in outcomes.items() if outcome == PASSED}
    assert passed & set(cpp) and passed - set(cpp), "the C++ test's and test_cuda.py's"


def test_every_test_that_the_file_has_is_run(upstream):
    """A parametrized test stands for its cases; one of a class that is made for each device for those."""
    listed = upstream.bench.listed(upstream.stock, upstream.pinned.choice)
    tests = [it.rpartition(".")[2] for it in listed]
    named = named_in_source(upstream.bench.tree, upstream.pinned.choice)
    assert named and upstream.bench.cpp_tests()
    lost = [it for it in named if it not in listed and not any(test.startswith(f"{it.rpartition('.')[2]}") for test in tests)]
    assert lost == []
