"""What a program or its libraries unregister: they may name any pointer that they have, and stock's blocks stay pinned."""

import pytest
from conftest import ALLOC_CONF

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


@pytest.mark.parametrize("settings", [
    {},
    {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"},
    {"BUDDY_THRESHOLD_MB": "0"},
    {"BUDDY_FORK": "hide"},
    {"BUDDY_BACKING": "cuda"},
    {"BUDDY_BACKING": "cuda", ALLOC_CONF: "pinned_use_cuda_host_register:True"},
], ids=lambda it: ",".join(it.values()) or "default")
def test_a_stray_unregister_is_refused_and_unpins_nothing(run, settings):
    # Processes beside this one share what is not set.
    outcome = run(STRAY, PINBUDDY_SIM_LOCK=0, BUDDY_MAX_MB=4096, BUDDY_BLOCK_SIZE_MB=16, **settings).quiet
    assert outcome.value == [[NOT_REGISTERED], True, 12, 12, 0]


def test_blocks_of_a_plan_are_not_unregistered_either(run, tmp_path):
    for _ in range(2):
        assert run(STRAY, PINBUDDY_SIM_LOCK=0, BUDDY_PLAN=tmp_path / "run.plan").value == [[NOT_REGISTERED], True, 12, 12, 0]


def test_who_unregisters_what_pinbuddy_registered_is_named_as_the_cause(run):
    """A library may ask CUDA where the memory begins in which a pointer lies."""
    outcome = run("""
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
        """, BUDDY_WARMUP="off", BUDDY_GROWTH="exact", PINBUDDY_SIM_LOCK=0)
    assert outcome.value == [0, False, 0, 0, True]
    (warning,) = outcome.warnings
    assert "24.0 MiB" in warning or "24 MiB" in warning
    assert "were unregistered by the program or by one of its libraries" in warning
