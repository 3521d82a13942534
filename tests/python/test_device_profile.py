"""What torch.profiler and snapshots say of planned blocks: as much came as went, and how much was asked for."""

import pytest
from device_plans import MIB, recorded


HEAD = """
    from program import *
    SIZES = [3 * MIB + 1000, 5 * MIB + 512, 4 * MIB]
    def step():
        return [torch.empty(size, dtype=torch.uint8, device="cuda") for size in SIZES]
    for _ in range(30):
        step()
"""

# The region is given back before, and comes and goes while the profiler listens.
PROFILE = HEAD + """
    from torch.profiler import ProfilerActivity, profile
    del torch._inductor  # The profiler needs it.
    torch.cuda.empty_cache()
    def changes(act):
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
            act()
        events = prof.profiler.kineto_results.events()
        device = torch.autograd.DeviceType.CUDA
        return [it.nbytes() for it in events if it.name() == "[memory]" and it.device_type() == device]
    kept = []
    came = changes(lambda: kept.extend(step()))
    went = changes(kept.clear)
    both = changes(lambda: (step(), torch.cuda.empty_cache()))
    print(json.dumps([came, went, both]))
"""


@pytest.fixture
def stock_and_planned(run, tmp_path):
    """What a program answers with stock, and with a plan of HEAD."""

    def both(program):
        recorded(run, tmp_path / "device.json", HEAD)
        return run(program, "stock").value, run(program, BUDDY_DEVICE_PLAN=str(tmp_path / "device.json")).value

    return both


def test_a_profiler_is_told_of_frees_and_not_of_regions(stock_and_planned):
    stock, planned = stock_and_planned(PROFILE)
    asked = 12 * MIB + 1512
    for came, went, both in (stock, planned):
        assert asked <= sum(came) <= asked + 3 * MIB, (stock, planned)
        assert sum(went) == -sum(came) and sum(both) == 0, (stock, planned)
        assert max(it for it in went) < 0, (stock, planned)
    blocks = sorted(it for it in planned[0] if 0 < it < 6 * MIB)
    assert blocks == [3 * MIB + 1024, 4 * MIB, 5 * MIB + 512], planned


SNAPSHOT = HEAD + """
    kept, side = step(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(400_000_000)
    kept[1].record_stream(side)
    del kept[1]
    segments = torch.cuda.memory_snapshot()
    busy = not side.query()
    blocks = [(b["state"], b["requested_size"]) for it in segments for b in it["blocks"] if b["state"] != "inactive"]
    print(json.dumps([busy, sorted(blocks), sum(it["requested_size"] for it in segments),
                      torch.cuda.memory_stats()["requested_bytes.all.current"]]))
"""


def test_a_snapshot_has_what_was_asked_for(stock_and_planned):
    stock, planned = stock_and_planned(SNAPSHOT)
    assert planned == stock and planned[0], (planned, stock)
    live, pending = "active_allocated", "active_pending_free"
    assert planned[1] == [[live, 3 * MIB + 1000], [live, 4 * MIB], [pending, 5 * MIB + 512]], planned


def test_a_tracer_is_told_of_blocks_and_of_no_region(stock_and_planned):
    """What CUDA's sanitizer in torch listens to: an address that comes twice confuses it."""
    program = HEAD + """
    import torch.cuda._gpu_trace as gpu_trace
    torch.cuda.empty_cache()
    live, wrong, told = set(), [], []
    def came(address):
        told.append(1)
        wrong.extend([address] if address in live else [])
        live.add(address)
    def went(address):
        wrong.extend([] if address in live else [address])
        live.discard(address)
    gpu_trace.register_callback_for_memory_allocation(came)
    gpu_trace.register_callback_for_memory_deallocation(went)
    torch._C._activate_gpu_trace()
    for _ in range(2):
        step()
        torch.cuda.empty_cache()
    kept = step()
    print(json.dumps([len(told) >= 9, len(live), wrong]))
    """
    assert stock_and_planned(program) == ([True, 3, []],) * 2
