"""The fork has the features of newer releases of stock's allocator, with the same values.

Two processes, one with stock and one with the fork, run `newer.py`. The fork pins for each request what
stock pins (exact growth and nothing ahead), so that all counters can be compared.
"""

import json

from release import COUNTS_WHAT_IS_ACTIVE, from_minor

AS_STOCK = {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"}

# Whether this release has the feature.
SUBJECTS = {
    "statistics": COUNTS_WHAT_IS_ACTIVE,
    "statistics_of_what_streams_used": COUNTS_WHAT_IS_ACTIVE,
    "who_gets_which_block": True,
    "freed_on_another_thread": True,
    "parts_of_it_are_pinned": True,
    "registered_in_place_of_allocated": True,
    "rounded_up_to_a_limit": from_minor(13),
    "cached_up_to_a_limit": from_minor(13),
    "events_seen_by_a_thread": True,
    "private_pools_of_captures": from_minor(13),
    "replays_of_a_graph": True,
    "settings_that_are_refused": True,
    "requests_that_are_refused": True,
    "registered_by_the_program": True,
    "life_of_a_block_in_the_history": from_minor(14),
}


def program(names) -> str:
    return f"""
        import runpy, sys
        sys.argv = ["newer.py", *{names!r}]
        runpy.run_path("newer.py", run_name="__main__")
    """


def test_every_value_is_stocks(run):
    names = [name for name, is_here in SUBJECTS.items() if is_here]
    (stock,) = run(program(names), "stock").value
    (fork,) = run(program(names), "fork", **AS_STOCK).value
    assert stock.keys() == fork.keys()
    differ = {key: (stock[key], fork[key]) for key in stock if stock[key] != fork[key]}
    assert not differ, json.dumps(differ, indent=1)
    if COUNTS_WHAT_IS_ACTIVE:
        # Control: a fork that pins ahead differs in allocations.
        settings = {"BUDDY_WARMUP": "sync", "BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "1"}
        (ahead,) = run(program(["statistics"]), "fork", **settings).value
        large = "statistics 8"
        assert ahead[large] != stock[large]
