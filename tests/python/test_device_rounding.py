"""roundup_power2_divisions: planned blocks are as long as PyTorch's own would be, whatever the setting says while they are asked for."""

import json

# Changes the setting while it runs, as programs may. Sizes of whole segments: PyTorch leaves a rest of up to 1 MiB with its block.
PROGRAM = """
    import json, torch
    MIB = 1 << 20
    SETTINGS = ["", "roundup_power2_divisions:4", "roundup_power2_divisions:[16:8,32:2,>:1]", "roundup_power2_divisions:[64:16]"]
    SIZES = [int(mib * MIB) for mib in (1.5, 4, 9, 14, 18, 22, 34, 42, 64)]
    def live(stats, name):
        return stats[f"{name}.all.current"]
    seen = []
    for step in range(12):
        for text in SETTINGS:
            torch.cuda.memory._set_allocator_settings(text)
            kept = []
            for size in SIZES:
                kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
                stats = torch.cuda.memory_stats()
                names = ("allocated_bytes", "active_bytes", "requested_bytes", "allocation")
                seen.append([live(stats, name) for name in names])
            del kept
    print(json.dumps(seen))
"""

COUNTS = """
    import pinbuddy
    print(json.dumps(pinbuddy.stats()["device"]))
"""


def test_a_planned_block_is_as_long_as_stocks_would_be(run, tmp_path):
    path = tmp_path / "device.json"
    stock = run(PROGRAM, "stock").value
    assert len({it[0] for it in stock}) > len({it[2] for it in stock}), "some are rounded up"
    assert run(PROGRAM, BUDDY_DEVICE_PLAN=str(path)).value == stock
    planned = run(PROGRAM + COUNTS, BUDDY_DEVICE_PLAN=str(path))
    assert json.loads(planned.stdout.splitlines()[-2]) == stock
    (stream,) = planned.value
    assert stream["hits"] > 0.9 * len(stock), stream
