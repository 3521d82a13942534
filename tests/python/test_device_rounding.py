"""roundup_power2_divisions: planned blocks are as long as PyTorch's own would be, whatever the setting says while they are asked for."""

import json

from device_plans import MIB

# Changes the setting while it runs, as programs may. Sizes of whole segments: PyTorch leaves a rest of up to 1 MiB with its block.
PROGRAM = """
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

def test_a_planned_block_is_as_long_as_stocks_would_be(run, twice):
    stock = run(PROGRAM, "stock").value
    assert len({it[0] for it in stock}) > len({it[2] for it in stock}), "some are rounded up"
    for planned in twice(PROGRAM + "    import pinbuddy; print(json.dumps(pinbuddy.stats()['device']))"):
        assert json.loads(planned.stdout.splitlines()[-2]) == stock
    (stream,) = planned.value
    assert stream["hits"] > 0.9 * len(stock), stream


# The region is taken where a cached block is a little longer, and then again and again while the setting rounds it up.
REGION = """
    cuda = torch.cuda
    def two():
        return block(42), block(34)
    seen, held, regions = [], [], []
    def note(freed=False):
        stats = cuda.memory_stats()
        names = ("allocation", "active", "allocated_bytes", "active_bytes", "requested_bytes")
        seen.append([stats[f"{name}.all.{when}"] for name in names for when in ("current", "allocated", "freed")])
        if not freed:
            # With nothing cached, what is reserved is active, or idle in a segment.
            idle = stats["inactive_split_bytes.all.current"]
            held.append([stats["reserved_bytes.all.current"], stats["active_bytes.all.current"] + idle])
        for pool in ("all", "small_pool", "large_pool"):
            idle = [stats[f"inactive_split_bytes.{pool}.{when}"] for when in ("current", "allocated", "freed")]
            assert idle[0] == idle[1] - idle[2], (pool, idle)
        if pinbuddy.stats()["device"]:
            regions.append(pinbuddy.stats()["device"][0]["reserved_bytes"])
    cuda.init()
    # These are no plan's. What is left of the segment of 78 MiB when the second is freed is 76.5 MiB.
    first = cuda.caching_allocator_alloc(MIB * 153 // 2)
    beside = cuda.caching_allocator_alloc(MIB * 6 // 5)
    cuda.caching_allocator_delete(first)
    kept = block(42)
    note()
    del kept
    note(freed=True)
    cuda.caching_allocator_delete(beside)
    for _ in range(30):
        two()
        block(60)
    if os.environ.get("STEPS_ALONE"):
        sys.exit(0)
    for text in ("roundup_power2_divisions:4", "", "roundup_power2_divisions:2", "roundup_power2_divisions:[64:2,>:1]"):
        cuda.empty_cache()
        note()
        cuda.memory._set_allocator_settings(text)
        kept = two()
        note()
        # It is given back under another setting.
        cuda.memory._set_allocator_settings("")
        del kept
        note(freed=True)
    print(json.dumps([seen, held, regions]))
"""


def test_a_region_counts_as_long_as_pytorch_made_it(run, tmp_path):
    path = str(tmp_path / "device.json")
    stock = run(REGION.replace("pinbuddy.stats()", "{'device': None}"), "stock").value
    assert run(REGION, BUDDY_DEVICE_PLAN=str(tmp_path / "other.json")).value == stock
    run(REGION, BUDDY_DEVICE_PLAN=path, STEPS_ALONE="1")
    seen, held, regions = run(REGION, BUDDY_DEVICE_PLAN=path).value
    assert seen == stock[0]
    assert all(reserved == whole for reserved, whole in held), held
    (stream,) = json.loads((tmp_path / "device.json").read_text())["plans"]
    # PyTorch has segments of whole 2 MiB.
    planned = sum(-(-it // (2 * MIB)) * 2 * MIB for it in stream["plan"]["regions"])
    assert max(regions) > min(it for it in regions if it) == planned, "some were longer than the plan has them"
