"""The fork's overhead for requests below the threshold: at most 5 % per pair, and 20 ms of work per import.

Machines are noisy, so each measurement takes turns with stock's, as many as are fixed here, and fails where even the
lower bound of its median, at 95 %, is above what is allowed: seven of eight rounds, or nine of ten, were slower.
"""

import sys

import pytest
from conftest import interpreter
from measure import MIB, at_least, compare_import_work, compare_loading, compare_pairs, torch_folder

ROUNDS = 8

pytestmark = pytest.mark.timing
SLOW = pytest.mark.slow("the same with another length or budget, or with the engine off")
PER_PROCESS = pytest.mark.slow("a figure of a release: what a process pays once")


@pytest.fixture(scope="module")
def pythons():
    return interpreter("stock"), sys.executable


@pytest.mark.parametrize("size, variables", [
    (64 << 10, {}),
    pytest.param(MIB, {}, marks=SLOW),
    pytest.param(64 << 10, {"BUDDY_DISABLE": 1}, marks=SLOW),
    pytest.param(64 * MIB, {"BUDDY_DISABLE": 1}, marks=SLOW),
])
def test_a_pair_that_is_upstreams_costs_what_it_did(pythons, size, variables):
    stock, fork = (torch_folder(python) for python in pythons)
    ratios = compare_pairs(stock, fork, size, processes=ROUNDS, **variables)["ratios"]
    assert at_least(ratios) <= 1.05, f"fork / stock: {ratios}"


# Only the allocator's own time: nothing is locked, and enough is pinned ahead.
HELD = {"BUDDY_BLOCK_COUNT": 1, "BUDDY_BLOCK_SIZE_MB": 1280, "BUDDY_WARMUP": "sync", "BUDDY_BACKING": "cuda", "PINBUDDY_SIM_LOCK": 0}


@pytest.mark.parametrize("size, live, variables", [
    pytest.param(64 << 10, 1000, {}, marks=SLOW),
    (4 * MIB, 300, HELD),
    # Upstream serves most of them, since only one segment may be pinned.
    pytest.param(4 * MIB, 100, HELD | {"BUDDY_BLOCK_SIZE_MB": 64, "BUDDY_MAX_MB": 64}, marks=SLOW),
], ids=["below the threshold", "engine", "budget used up"])
def test_many_blocks_at_once_cost_no_more_than_stocks(pythons, size, live, variables):
    stock, fork = (torch_folder(python) for python in pythons)
    ratios = compare_pairs(stock, fork, size, live, processes=ROUNDS, **variables)["ratios"]
    assert at_least(ratios) <= 1, f"fork / stock: {ratios}"


@PER_PROCESS
def test_importing_torch_is_at_most_20_ms_more_work(pythons):
    seen = compare_import_work(*pythons)
    assert at_least(seen["deltas_ms"]) <= 20, seen


@PER_PROCESS
def test_our_library_loads_in_a_few_milliseconds(pythons):
    seen = compare_loading(*pythons)
    assert at_least(seen["deltas_ms"]) <= 5, seen
