"""A defect of ours in a plan of device memory: the plan retires, its blocks stay valid, and PyTorch's allocator serves."""

import pytest


def test_a_plan_that_panics_retires_and_the_training_goes_on(with_plan):
    """Only a debug build can be made to break down."""
    outcome = with_plan("""
    import ctypes, plugin
    library = ctypes.CDLL(str(plugin.library()))
    if not library.pinbuddy_debug_build():
        print(json.dumps(hasattr(library, "pinbuddy_break_down_device")))
        raise SystemExit
    side = torch.cuda.Stream()
    data = torch.arange(MIB, dtype=torch.int64)
    kept = block(12)
    kept.view(torch.int64)[:MIB].copy_(data)
    was_planned = planned(kept)
    library.pinbuddy_break_down_device()
    for _ in range(3):
        step()
    after = block(12)
    seen = [bool(torch.equal(kept.view(torch.int64)[:MIB].cpu(), data)), planned(after), counts()["dropped"]]
    states = [it["state"] for s in torch.cuda.memory_snapshot() for it in s["blocks"] if it["address"] == region]
    held = [counts()["reserved_bytes"] >> 20]
    # Another stream uses the last block of the region, which is given back once both are done.
    kept.record_stream(side)
    del kept
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    held.append(counts()["reserved_bytes"] >> 20)
    print(json.dumps([was_planned, seen, states, held, torch.cuda.memory_allocated() >> 20]))
    """)
    if outcome.value is False:
        pytest.skip("a released build has no such entry")
    assert outcome.value == [True, [True, False, True], ["active_allocated"], [20, 0], 12]
    assert len(outcome.warnings) == 1, outcome.stderr
    assert "a stream's plan for device 0 is retired" in outcome.warnings[0]
