"""The engine keeps to a budget, and says so once, with the numbers."""

import re

import pytest

STATE = """
    first = pinned(8)
    pinbuddy.warm_up(wait=True)
    answer(segments(), pinbuddy.stats()["budget"], pinbuddy.stats()["engine"]["pinned_bytes"]["peak"])
"""


def test_a_warm_up_shrinks_to_the_maximum_and_says_so_once(run):
    outcome = run(STATE, BUDDY_BLOCK_SIZE_MB=32, BUDDY_BLOCK_COUNT=8, BUDDY_MAX_MB=110)
    segments, budget, peak = outcome.value
    assert segments == [8, 32, 32, 32]
    assert budget["bytes"] == 110 << 20 and peak <= budget["bytes"]
    (warning,) = outcome.warnings
    for number in ("3 of 8", "32 MiB", "110 MiB", "BUDDY_MAX_MB"):
        assert number in warning


@pytest.mark.parametrize(("memory", "part"), [("", 2), ("integrated", 4), ("coherent", 4)])
def test_where_the_gpu_shares_the_memory_the_budget_is_smaller(run, memory, part):
    outcome = run(STATE, BUDDY_BLOCK_SIZE_MB=32, BUDDY_BLOCK_COUNT=2, PINBUDDY_SIM_MEMORY=memory)
    _, budget, peak = outcome.value
    assert 0 < peak <= budget["bytes"] and not outcome.warnings
    why = budget["why"]
    size = float(re.search(r"([0-9.]+) GiB", why)[1])
    found, most = budget["bytes"] / 2**30, size / part
    assert found < most + 0.1, why
    # Other tests may pin now; what they share or hold is not ours.
    if "shared by" not in why and ", less" not in why:
        assert found > most - 0.1, why
    assert why.startswith("a quarter of the" if part == 4 else "half of the")
    assert why.endswith(", as the GPU uses that memory, too") == (part == 4)


def test_what_passes_the_budget_is_pytorchs_own(run):
    outcome = run("""
        kept = [pinned(40).fill_(i) for i in range(4)]
        whole = all(bool((tensor.to("cuda").cpu() == i).all()) for i, tensor in enumerate(kept))
        answer([of_engine(it) for it in kept], whole, all(it.is_pinned() for it in kept))
        """, BUDDY_WARMUP="off", BUDDY_BLOCK_SIZE_MB=64, BUDDY_MAX_MB=130)
    of_engine, whole, pinned = outcome.value
    # Three regions of 40 MiB: a region is as long as its request if no more would fit.
    assert of_engine == [True, True, True, False] and whole and pinned
    assert len(outcome.warnings) == 1, outcome.stderr
