"""The fork has the features of newer releases of stock's allocator, with the same values.

Two processes, one with stock and one with the fork, run `newer.py`. The fork pins for each request what
stock pins (exact growth and nothing ahead), so that all counters can be compared.
"""

import json

from release import COUNTS_WHAT_IS_ACTIVE

AS_STOCK = {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"}


def program(*names: str) -> str:
    return f"""
        import runpy, sys
        sys.argv = ["newer.py", *{names!r}]
        runpy.run_path("newer.py", run_name="__main__")
    """


def test_every_value_is_stocks(run):
    (stock,) = run(program(), "stock").value
    (fork,) = run(program(), "fork", **AS_STOCK).value
    assert stock.keys() == fork.keys() and len(stock) > 30
    differ = {key: (stock[key], fork[key]) for key in stock if stock[key] != fork[key]}
    assert not differ, json.dumps(differ, indent=1)
    if COUNTS_WHAT_IS_ACTIVE:
        # Control: a fork that pins ahead differs in allocations.
        settings = {"BUDDY_WARMUP": "sync", "BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "1"}
        (ahead,) = run(program("statistics"), "fork", **settings).value
        large = "statistics 8"
        assert ahead[large] != stock[large]
