"""The fork has the features of newer releases of stock's allocator, with the same values.

Two processes, one with stock and one with the fork, run `newer.py`. The fork pins for each request what
stock pins (exact growth and nothing ahead), so that all counters can be compared.
"""

import json
import re
from pathlib import Path

import forked
from release import COUNTS_WHAT_IS_ACTIVE, from_minor

AS_STOCK = {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"}


PROGRAM = Path(__file__).with_name("newer.py")


def test_every_value_is_stocks(run):
    program = forked.program([str(PROGRAM)])
    (stock,), (fork,) = run(program, "stock").value, run(program, **AS_STOCK).value
    subjects = {it.split()[0] for it in stock}
    written = set(re.findall(r"^def (\w+)\((?:size|_)\):", PROGRAM.read_text(), re.MULTILINE))
    assert stock.keys() == fork.keys()
    assert subjects == written if from_minor(13) else len(subjects) >= 5
    differ = {key: (stock[key], fork[key]) for key in stock if stock[key] != fork[key]}
    assert not differ, json.dumps(differ, indent=1)
    if COUNTS_WHAT_IS_ACTIVE:
        # Control: a fork that pins ahead differs in allocations.
        settings = {"BUDDY_WARMUP": "sync", "BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "1"}
        (ahead,) = run(forked.program([str(PROGRAM), "statistics"]), **settings).value
        assert ahead["statistics 8"] != stock["statistics 8"]
