"""A recorded trace says where the program waited for the driver, and for how long."""

import pytest
from recorded import waits

# A pin takes 4 ms a MiB at least.
SLOW = {"PINBUDDY_SIM_PIN_MS_PER_GB": "4096", "BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"}


@pytest.fixture
def recorded(traced):
    """``recorded(program)``: the events of its run, waits among them."""
    return lambda program, **settings: traced(program, waits=True, **settings).events


def check(found: list[tuple], expected: list[tuple]) -> None:
    """Waits of these sizes, each for as long as the driver took or somewhat longer, on a machine that others use, too."""
    assert [it[0] for it in found] == [it[0] for it in expected], found
    for (_, took), (_, least) in zip(found, expected, strict=True):
        assert least <= took < least * 3 + 300, found


def test_requests_that_pin_wait_and_those_that_hit_do_not(recorded):
    events = recorded("""
for step in range(3):
    [pinned(64), pinned(32)]
    pinbuddy.iteration()
""", **SLOW)
    check(waits(events), [(64, 256), (32, 128)])
    # Each right after its request, and over when the request was served.
    at = [i for i, it in enumerate(events) if it["op"] == "wait"]
    assert at == [1, 3]
    for i in at:
        assert [events[i][name] for name in ("id", "thread")] == [events[i - 1][name] for name in ("id", "thread")]
    # The recording has begun before the first request waited.
    assert events[1]["t"] >= 256e6


def test_requests_below_the_threshold_wait_as_well(recorded):
    """PyTorch's own path pins for them: a power of two, once."""
    events = recorded("kept = [pinned(33)]\nkept = []\nkept = [pinned(40)]", **SLOW, BUDDY_THRESHOLD_MB="512")
    check(waits(events), [(33, 256)])


def test_emptying_the_cache_waits_for_what_it_unpins_and_only_then(recorded):
    events = recorded("""
torch._C._host_emptyCache()
pinned(1), pinned(64)
torch._C._host_emptyCache()
torch._C._host_emptyCache()
""", BUDDY_WARMUP="off", BUDDY_GROWTH="exact")
    kinds = [it["op"] + (" for a request" if it["op"] == "wait" and "id" in it else "") for it in events]
    # PyTorch's own memory goes first.
    assert kinds == [
        *["clear", "alloc", "wait for a request", "alloc", "wait for a request", "free", "free"],
        *["wait", "clear", "wait", "clear"],
    ]
