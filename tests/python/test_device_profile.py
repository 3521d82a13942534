"""What torch.profiler and snapshots say of planned blocks: as much came as went, and how much was asked for."""

from device_plans import MIB, recorded

HEAD = """
    SIZES = [3 * MIB + 1000, 5 * MIB + 512, 4 * MIB]
    def step():
        return [torch.empty(size, dtype=torch.uint8, device="cuda") for size in SIZES]
    for _ in range(30):
        step()
"""

PROGRAM = HEAD + """
    # The region is given back before, and comes and goes while the profiler listens.
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
    # What a snapshot shows.
    kept, side = step(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(400_000_000)
    kept[1].record_stream(side)
    del kept[1]
    segments = torch.cuda.memory_snapshot()
    busy = not side.query()
    blocks = [(b["state"], b["requested_size"]) for it in segments for b in it["blocks"] if b["state"] != "inactive"]
    seen = [busy, sorted(blocks), sum(it["requested_size"] for it in segments), torch.cuda.memory_stats()["requested_bytes.all.current"]]
    torch.cuda.synchronize()
    kept.clear()
    # CUDA's sanitizer in torch listens to the tracer: an address that comes twice confuses it.
    import torch.cuda._gpu_trace as gpu_trace
    torch.cuda.empty_cache()
    live, wrong, told = set(), [], []
    def begun(address):
        told.append(1)
        wrong.extend([address] if address in live else [])
        live.add(address)
    def ended(address):
        wrong.extend([] if address in live else [address])
        live.discard(address)
    gpu_trace.register_callback_for_memory_allocation(begun)
    gpu_trace.register_callback_for_memory_deallocation(ended)
    torch._C._activate_gpu_trace()
    for _ in range(2):
        step()
        torch.cuda.empty_cache()
    kept = step()
    answer([came, went, both], seen, len(told) >= 9, len(live), wrong)
"""


def test_profilers_snapshots_and_tracers_are_told_of_blocks_and_of_no_region(run, tmp_path):
    recorded(run, tmp_path / "device.json", HEAD)
    stock = run(PROGRAM, "stock").value
    planned = run(PROGRAM, BUDDY_DEVICE_PLAN=str(tmp_path / "device.json")).value
    asked = 12 * MIB + 1512
    for came, went, both in (stock[0], planned[0]):
        assert asked <= sum(came) <= asked + 3 * MIB, (stock, planned)
        assert sum(went) == -sum(came) and sum(both) == 0, (stock, planned)
        assert max(went) < 0, (stock, planned)
    assert sorted(it for it in planned[0][0] if 0 < it < 6 * MIB) == [3 * MIB + 1024, 4 * MIB, 5 * MIB + 512], planned
    assert planned[1:] == stock[1:] and planned[1][0], (planned, stock)
    live, pending = "active_allocated", "active_pending_free"
    assert planned[1][1] == [[live, 3 * MIB + 1000], [live, 4 * MIB], [pending, 5 * MIB + 512]], planned
    assert planned[2:] == [True, 3, []], planned
