"""Idle memory goes back by itself, is unlocked, and comes back when it is needed; without a plan: test_examples.py."""

import pytest
from plans import recorded


@pytest.mark.simulated("what a driver locks is in no count")
def test_a_plan_sleeps_after_one_clear_and_wakes_with_its_first_request(run, tmp_path):
    """By default: the clear is foreseen, since the recorded loop goes on after it, and then nobody asks for anything."""
    program = """
    use_gpu()
    def locked():
        with open("/proc/self/status") as lines:
            return max(int(it.split()[1]) for it in lines if it.startswith("VmLck:")) >> 10
    def pinned_now():
        return sum(it["bytes"] for it in pinbuddy.stats()["segments"]) // MIB
    def iterate():
        for size in (24, 32):
            pinned(size)
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
    answer(held, asleep, locked(), sleeps, pinbuddy.stats()["engine"]["returned_bytes"] // MIB)
    """
    plan = tmp_path / "run.plan"
    recorded(run, plan, program)
    held, asleep, awake, sleeps, returned = run(program, BUDDY_PLAN=str(plan)).value
    assert sleeps and held >= 32 and asleep == 0 and awake >= held and returned >= held, (held, asleep, awake, returned)
