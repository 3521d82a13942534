"""Idle memory goes back by itself (BUDDY_IDLE_S), is unlocked, and comes back when it is needed."""

import pytest
from plans import recorded

SMALL = {"BUDDY_BLOCK_SIZE_MB": "64"}

LOCKED = """
    from program import *
    import pinbuddy
    use_gpu()

    def locked():
        with open("/proc/self/status") as lines:
            return max(int(it.split()[1]) for it in lines if it.startswith("VmLck:")) >> 10

    def returned():
        return pinbuddy.stats()["engine"]["returned_bytes"] // MIB

    def pinned_now():
        return sum(it["bytes"] for it in pinbuddy.stats()["segments"]) // MIB

    def iterate():
        for size in (24, 32):
            pinned(size)
"""


@pytest.mark.simulated("what a driver locks is in no count")
def test_locked_memory_goes_back_and_comes_again(run):
    outcome = run(LOCKED + """
    kept = pinned(8)
    pinned(48)
    before = locked()
    until(lambda: pinned_now() <= 8, 20)
    kept.fill_(7)
    after = locked(), returned()
    again = pinned(48)
    again.fill_(1)
    answer(before, *after, locked(), bool((kept == 7).all()), again.is_pinned())
    """, **SMALL, BUDDY_IDLE_S="0", BUDDY_WARMUP="off")
    before, after, returned, again, *sound = outcome.value
    assert sound == [True, True]
    assert before >= 56
    assert after <= 10 and returned >= 48 and again >= 56, outcome.value


@pytest.mark.simulated("what a driver locks is in no count")
def test_a_plan_sleeps_after_one_clear_and_wakes_with_its_first_request(run, tmp_path):
    """By default: the clear is foreseen, since the recorded loop goes on after it, and then nobody asks for anything."""
    program = LOCKED + """
    for _ in range(6):
        iterate()
        torch._C._host_emptyCache()
    held = locked()
    sleeps = pinbuddy.stats()["plan"] is not None
    if sleeps:
        until(lambda: pinned_now() == 0, 30)
    asleep = locked()
    first = pinned(24)
    if sleeps:
        until(lambda: pinned_now() >= held, 30)
    answer(held, asleep, locked(), sleeps)
    """
    plan = tmp_path / "run.plan"
    recorded(run, plan, program)
    held, asleep, awake, sleeps = run(program, BUDDY_PLAN=str(plan)).value
    assert sleeps and held >= 32 and asleep == 0 and awake >= held, (held, asleep, awake)
