"""The warm-up: who pins what, who waits for it, and how long.

The simulator pins one region at a time at a given pace, like a driver, so times depend on the allocator's decisions
and not on the machine.
"""

import pytest
from measure import at_least
from table import answers

BLOCKS = {"BUDDY_BLOCK_SIZE_MB": "256", "BUDDY_BLOCK_COUNT": "4"}
# 256 MiB take one second, 64 MiB a quarter.
SLOW = {"PINBUDDY_SIM_PIN_MS_PER_GB": "4000", "PINBUDDY_SIM_LOCK": "0"}

CONTEXTS = """
    contexts = lambda: [torch._C._cuda_hasPrimaryContext(it) for it in range(2)]
    asked = pinbuddy.warm_up(HOW)
    time.sleep(0.3)
    states = [asked, contexts(), segments()]
    torch.cuda.set_device(1)
    on_device = torch.zeros(1, device="cuda")
    until(lambda: segments() == [32, 32])
    answer(*states, contexts())
"""
# On a GPU that the program has neither chosen nor named it makes no context.
NONE = [True, [False, False], [], [False, True]]

test_a_warm_up_takes_the_gpu_that_is_chosen_or_named = answers({
    how: (CONTEXTS.replace("HOW", how), *expected) for how, *expected in [
        ("wait=False", NONE),
        ("wait=True", NONE, "warm_up(wait=True) does not wait"),
        ("wait=True, device=0", [True, [True, False], [32, 32], [True, True]]),
        ("wait=True, device='cuda:1'", [True, [False, True], [32, 32], [False, True]]),
    ]
}, quiet=True, PINBUDDY_SIM_DEVICES=2, BUDDY_BLOCK_SIZE_MB=32, BUDDY_BLOCK_COUNT=2)


@pytest.mark.timing
@pytest.mark.slow("a figure of a release: what a program waits once")
def test_the_first_block_comes_as_soon_as_stocks_while_the_warm_up_goes_on(run):
    program = """
    torch.cuda.init()
    taken = seconds(lambda: globals().update(first=pinned(64)))
    answer(taken, pinbuddy and warm_up()["phase"] == "running")
    """
    ratios = []
    for _ in range(5):
        stock, _ = run(program, "stock", **SLOW).value
        # The simulated pace is that of a driver which zeroes the pages itself.
        fork, goes_on = run(program, "fork", **SLOW, **BLOCKS, BUDDY_BACKING="cuda").value
        assert goes_on
        ratios.append(fork / stock)
    assert at_least(ratios) <= 1.1, ratios


USES = "on_device = torch.zeros(8, device='cuda')"


@pytest.mark.parametrize("uses, act", [
    # The warm-up's thread starts on device 0.
    ("", "pinbuddy.warm_up(wait=True)"),
    (USES, "pinbuddy.warm_up(wait=True)"),
    (USES, "first = pinned(8); until(lambda: warm_up()['phase'] == 'done')"),
    # So do others. What the warm-up's thread pins during a clear it unpins.
    (USES, "pinbuddy.warm_up(wait=True); together(pinbuddy.empty_cache)"),
    (USES, "pinbuddy.warm_up(); until(lambda: sim()['pins']); pinbuddy.empty_cache(); until(lambda: warm_up()['phase'] != 'running')"),
])
def test_no_context_is_made_on_a_device_that_the_process_does_not_use(run, uses, act):
    before, after = run(f"""
        torch.cuda.set_device(2)
        {uses}
        before = sim()["contexts"]
        {act}
        assert sim()["pins"] >= 1
        answer(before, sim()["contexts"])
        """, BUDDY_BLOCK_SIZE_MB=16, BUDDY_BLOCK_COUNT=3, PINBUDDY_SIM_DEVICES=4).value
    # Some releases make it when a device is chosen.
    assert after == [2] and before in ([2], [2] if uses else [])
