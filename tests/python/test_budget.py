"""The engine's budget, where the GPU has memory of its own and where it uses the machine's."""

import re

import pytest

STATE = """
    first = pinned(8)
    pinbuddy.warm_up(wait=True)
    answer(segments(), pinbuddy.stats()["budget"], pinbuddy.stats()["engine"]["pinned_bytes"]["peak"])
"""


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
