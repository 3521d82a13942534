"""A pin or an unpin that the driver refuses: what is kept, what is tried, and what the user reads."""

import pytest
from conftest import ALLOC_CONF, needs

SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "32", "BUDDY_BLOCK_COUNT": "3", "BUDDY_WARMUP": "sync"}


# With `off` it is the same call that pins, and is refused.
@pytest.mark.parametrize("mode", ["sync", "background"])
def test_the_next_launch_is_not_blamed(run, mode):
    """A failed pin leaves an error behind in the runtime; unless it is cleared, the next kernel launch reports it (vllm#51081)."""
    refused, arrived = run("""
        on_device = torch.zeros(1000, device="cuda")
        tensor = pinned(20).fill_(3)
        pinbuddy.warm_up(wait=True)
        refused = sim()["pins_refused"]
        on_device += 1
        torch.cuda.synchronize()
        answer(refused, bool((tensor.to("cuda", non_blocking=True).cpu() == 3).all()))
        """, BUDDY_BLOCK_SIZE_MB=32, BUDDY_BLOCK_COUNT=3, BUDDY_WARMUP=mode, PINBUDDY_SIM_FAIL_PIN_AFTER_MB=70).value
    assert refused >= 1 and arrived


def test_the_final_error_is_upstreams_with_whose_memory_it_is_and_the_engines_state(run):
    program = """
        kept = [pinned(30)]
        answer(refused(lambda: pinned(200)), pinned(4).is_pinned())
    """
    limit = {"PINBUDDY_SIM_FAIL_PIN_AFTER_MB": "100"}
    stock, _ = run(program, "stock", **limit).value
    fork, goes_on = run(program, "fork", **limit, **SETTINGS).value
    assert goes_on and fork.startswith(stock.splitlines()[0])
    added = [line for line in fork.splitlines() if "pinbuddy: " in line]
    assert len(added) == 2, fork
    # CUDA's "out of memory" is what it says of a GPU, too.
    whose, state = added
    assert "page-locked host memory was refused, not memory of a GPU: 256 MiB were asked for" in whose
    assert "No limit of the kernel's is reached" in whose
    assert "budget: " in state and "pinned (" in state


def test_pytorchs_own_requests_get_what_the_engine_holds_idle(run):
    """Room for 300 MiB of which the engine has warmed 256, and then only small requests."""
    program = """
        kept = [pinned(30)]
        small = [pinned(1).fill_(i % 100) for i in range(200)]
        answer(all(it.is_pinned() for it in small), bool((small[77] == 77).all()))
    """
    limit = {"PINBUDDY_SIM_FAIL_PIN_AFTER_MB": "300"}
    settings = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "4", "BUDDY_WARMUP": "sync"}
    assert run(program, "stock", **limit).value == [True, True]
    assert run(program, "fork", **limit, **settings).value == [True, True]


def test_below_the_threshold_the_final_error_has_the_engines_state_too(run):
    count, text = run("""
        kept = [pinned(30)]
        small = []
        while not (text := refused(lambda: small.append(pinned(1)))):
            pass
        answer(len(small), text)
        """, **SETTINGS, PINBUDDY_SIM_FAIL_PIN_AFTER_MB=100).value
    # One block is live, and the page before it; the other two were unpinned.
    assert count == 100 - 32 - 1 and "out of memory" in text and "pinbuddy: 32 MiB pinned" in text


@needs(15, "pinned_free_catch_all")
@pytest.mark.parametrize("asked", [False, True])
def test_a_free_whose_unpin_is_refused_warns_where_that_is_asked_for_and_loses_nothing(run, asked):
    """Below the threshold, longer than what PyTorch may keep. Without the setting stock ends the program."""
    outcome = run("""
        use_gpu()
        tensor = pinned(0.5)
        before = sim()["unpins"]
        del tensor
        refused = sim()["unpins"] == before
        served = pinned(0.5).is_pinned()
        torch._C._host_emptyCache()
        answer(refused, served, sim()["pinned_bytes"])
        """, PINBUDDY_SIM_FAULTS="cudaFreeHost:1=999", **{ALLOC_CONF: f"pinned_max_cached_size_mb:0,pinned_free_catch_all:{asked}"})
    assert outcome.value == [True, True, 0]
    assert ("pinned_free_catch_all: could not free pinned memory: CUDA error: unknown error" in outcome.stderr) == asked
