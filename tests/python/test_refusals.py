"""A pin or an unpin that the driver refuses: what is kept, what is tried, and what the user reads. And what a program or its libraries
unregister: they may name any pointer that they have, and stock's blocks stay pinned."""

import pytest
from conftest import ALLOC_CONF, needs
from table import answers

SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "32", "BUDDY_BLOCK_COUNT": "3", "BUDDY_WARMUP": "sync"}

# A failed pin leaves an error behind in the runtime; unless it is cleared, the next kernel launch reports it (vllm#51081).
LAUNCHES = """
    on_device = torch.zeros(1000, device="cuda")
    tensor = pinned(20).fill_(3)
    pinbuddy.warm_up(wait=True)
    refused = sim()["pins_refused"]
    on_device += 1
    torch.cuda.synchronize()
    answer(refused >= 1, bool((tensor.to("cuda", non_blocking=True).cpu() == 3).all()))
"""

test_what_is_left_of_a_refusal = answers({
    # With `off` it is the same call that pins, and is refused.
    **{f"the next launch is not blamed, {mode}": (LAUNCHES, [True, True], {"BUDDY_WARMUP": mode, "PINBUDDY_SIM_FAIL_PIN_AFTER_MB": 70})
       for mode in ("sync", "background")},
    # One block is live, and the page before it; the other two were unpinned.
    "below the threshold PyTorch gets what the engine holds idle, and its final error has the engine's state, too": ("""
        kept = [pinned(30)]
        small = []
        while not (text := refused(lambda: small.append(pinned(1).fill_(len(small))))):
            pass
        whole = all(it.is_pinned() and bool((it == i).all()) for i, it in enumerate(small))
        answer(len(small), whole, "out of memory" in text, "pinbuddy: 32 MiB pinned" in text)
    """, [100 - 32 - 1, True, True, True], {"PINBUDDY_SIM_FAIL_PIN_AFTER_MB": 100}),
    # A library may ask CUDA where the memory begins in which a pointer lies.
    "who unregisters what pinbuddy registered is named as the cause": ("""
        use_gpu()
        kept = pinned(24)
        (segment,) = pinbuddy.stats()["segments"]
        code = int(torch.cuda.cudart().cudaHostUnregister(segment["address"] - 4096))
        seen = [code, kept.is_pinned()]
        del kept
        pinbuddy.empty_cache()
        seen += [sim()["pinned_bytes"], pinbuddy.stats()["engine"]["pinned_bytes"]["current"]]
        use_gpu()
        answer(*seen, pinned(24).is_pinned())
    """, [0, False, 0, 0, True], {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact", "PINBUDDY_SIM_LOCK": 0},
        ["24 MiB", "were unregistered by the program or by one of its libraries"]),
}, **SETTINGS)


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


NOT_REGISTERED = 713
# Blocks share segments, and some have one of their own. Then each is unregistered by somebody who has pinned nothing.
STRAY = """
    use_gpu()
    for _ in range(12):
        kept = [pinned(size) for size in [6] * 6 + [4.5, 18, 5, 1, 33, 6]]
    [it.fill_(i) for i, it in enumerate(kept)]
    codes = {int(torch.cuda.cudart().cudaHostUnregister(it.data_ptr())) for it in kept}
    ctypes.CDLL(None).cudaGetLastError()  # Else the program's next launch meets the error.
    whole = all(bool((it.to("cuda", non_blocking=True).cpu() == i).all()) for i, it in enumerate(kept))
    count = len(kept), sum(it.is_pinned() for it in kept)
    del kept
    torch._C._host_emptyCache()
    answer(sorted(codes), whole, *count, sim()["pinned_bytes"])
"""


NONE_UNPINNED = [[NOT_REGISTERED], True, 12, 12, 0]

# Processes beside this one share what is not set.
test_a_stray_unregister_is_refused_and_unpins_nothing = answers({
    ",".join(settings.values()) or "default": (STRAY, NONE_UNPINNED, settings) for settings in [
        {},
        {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"},
        {"BUDDY_THRESHOLD_MB": "0"},
        {"BUDDY_FORK": "hide"},
        {"BUDDY_BACKING": "cuda"},
        {"BUDDY_BACKING": "cuda", ALLOC_CONF: "pinned_use_cuda_host_register:True"},
    ]
}, quiet=True, PINBUDDY_SIM_LOCK=0, BUDDY_MAX_MB=4096, BUDDY_BLOCK_SIZE_MB=16)


def test_blocks_of_a_plan_are_not_unregistered_either(run, tmp_path):
    for _ in range(2):
        assert run(STRAY, PINBUDDY_SIM_LOCK=0, BUDDY_PLAN=tmp_path / "run.plan").value == NONE_UNPINNED
