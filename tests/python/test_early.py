"""With a plan, memory is pinned once CUDA is initialised, before the first request; idle, it goes back by itself, is unlocked, and comes
back when it is needed. Without a plan: test_examples.py."""

import plans
import pytest

SETTINGS = {"BUDDY_THRESHOLD_MB": "1"}

# Two blocks that are live at once, and then what the plan has pinned before anything was asked for.
RECORDED = """
import torch
for _ in range(12):
    [torch.empty(size << 20, dtype=torch.uint8, pin_memory=True) for size in SIZES]
print(0)
"""
REPEAT = RECORDED.replace("SIZES", "(8, 24)")
VARY = RECORDED.replace("SIZES", "(8 + _, 24 - _ * _ % 7)")
# It has a context then.
USES = "there = torch.zeros(8, device='cuda')"
@pytest.fixture
def looks(run, plan):
    """``looks(begin, seconds, recorded)``: what is pinned before CUDA is up, some time after it, and after
    a request, in a run with the plan of `recorded`."""

    def looks(begin, seconds, recorded=REPEAT):
        plans.recorded(run, plan, recorded, **SETTINGS)
        return run(f"""
def at_once():
    return pinbuddy.stats()["engine"]["pinned_bytes"]["current"]
before = at_once()
{begin}
with contextlib.suppress(TimeoutError):
    until(at_once, {seconds})
early = at_once()
block = pinned(24)
answer(before, early, at_once())
""", BUDDY_PLAN=str(plan), **SETTINGS).quiet.value

    return looks


@pytest.mark.parametrize("recorded", [pytest.param(REPEAT, marks=pytest.mark.release), VARY], ids=["slots", "amounts"])
def test_a_plan_is_pinned_before_the_first_request(looks, recorded):
    before, early, after = looks(USES, 60, recorded)
    assert before == 0 and early >= 32 << 20 and after == early


def test_nothing_is_pinned_early_without_a_device_in_use(looks):
    before, early, after = looks("torch.cuda.init()", 0.5)
    assert (before, early) == (0, 0) and after > 0


def test_it_is_pinned_for_the_device_that_the_program_uses(run, plan):
    """As each rank of a launcher that shows all GPUs to all: on which node memory lies depends on it."""
    plans.recorded(run, plan, REPEAT, **SETTINGS)
    assert run("""
        torch.cuda.set_device(1)
        there = torch.zeros(8, device="cuda")
        until(lambda: pinbuddy.stats()["engine"]["pinned_bytes"]["current"] > 0)
        until(lambda: top().get("pinned_bytes"))
        answer(top()["device"])
        """, BUDDY_PLAN=str(plan), BUDDY_LIVE="1", PINBUDDY_SIM_DEVICES="2", **SETTINGS).value == [1]


@pytest.mark.simulated("what a driver locks is in no count")
def test_a_plan_sleeps_after_one_clear_and_wakes_with_its_first_request(run, plan):
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
    plans.recorded(run, plan, program)
    held, asleep, awake, sleeps, returned = run(program, BUDDY_PLAN=str(plan)).value
    assert sleeps and held >= 32 and asleep == 0 and awake >= held and returned >= held, (held, asleep, awake, returned)
