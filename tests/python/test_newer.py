"""The fork has the features of newer releases of stock's allocator, with the same values.

Two processes, one with stock and one with the fork, run `newer.py`. The fork pins for each request what
stock pins (exact growth and nothing ahead), so that all counters can be compared.
"""

import json
import re
from pathlib import Path

from release import COUNTS_WHAT_IS_ACTIVE, from_minor

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
    subjects = {it.split()[0] for it in stock}
    written = set(re.findall(r"^def (\w+)\((?:size|_)\):", Path("newer.py").read_text(), re.MULTILINE))
    assert stock.keys() == fork.keys()
    assert subjects == written if from_minor(14) else len(subjects) >= 9
    differ = {key: (stock[key], fork[key]) for key in stock if stock[key] != fork[key]}
    assert not differ, json.dumps(differ, indent=1)
    if COUNTS_WHAT_IS_ACTIVE:
        # Control: a fork that pins ahead differs in allocations.
        settings = {"BUDDY_WARMUP": "sync", "BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "1"}
        (ahead,) = run(program("statistics"), "fork", **settings).value
        large = "statistics 8"
        assert ahead[large] != stock[large]
