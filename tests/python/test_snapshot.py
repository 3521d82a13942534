"""The memory snapshot shows the engine's segments and blocks, and PyTorch's own viewer opens it."""

import json
import pickle

import pytest
from conftest import command_line, needs
from torch.cuda import _memory_viz

pytestmark = needs(14, "a history of pinned memory")

SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "2", "BUDDY_WARMUP": "sync"}


def test_it_has_every_segment_and_block_with_where_it_was_asked_for_and_their_lives_and_pytorchs_viewer_opens_it(run, tmp_path):
    totals, tiled, has_frames, block, segments, pending = run("""
    use_gpu()
    torch.cuda.memory._record_memory_history(record_pinned_host_memory=True)
    def first_user():
        return pinned(8)
    kept, freed = first_user(), pinned(16)
    small = pinned(0.5)
    torch.cuda._sleep(1_000_000_000)
    freed.to("cuda", non_blocking=True)
    gone = pinned(4)
    del freed, gone
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._dump_snapshot(os.environ["FILE"])
    entries = snapshot["host_segments"]
    def total(state):
        blocks = [block for it in entries for block in it["blocks"]]
        return sum(block["size"] for block in blocks if block["state"] == state) / MIB
    # The entries cover each of the engine's segments, without gap or overlap.
    tiled = []
    for segment in pinbuddy.stats()["segments"]:
        at, end = segment["address"], segment["address"] + segment["bytes"]
        for entry in sorted(entries, key=lambda it: it["address"]):
            if at == entry["address"] and at < end:
                at += entry["total_size"]
        tiled.append(at == end)
    mine = next(it for it in entries if it["address"] == kept.data_ptr())
    names = [frame["name"] for frame in mine["blocks"][0]["frames"]]
    states = ("active_allocated", "active_pending_free", "inactive")
    seen = [[total(state) for state in states], tiled, "first_user" in names]
    address = kept.data_ptr()
    torch.cuda.synchronize()
    del kept
    pinned(8)
    torch._C._host_emptyCache()
    trace = torch.cuda.memory._snapshot()["host_traces"]
    block = [it["action"] for it in trace if it["addr"] == address and it["size"] == 8 << 20]
    actions = [it["action"] for it in trace if it["size"] == 64 << 20]
    pending = [it["action"] for it in trace if it["size"] == 16 << 20]
    answer(*seen, block, actions, pending)
    """, **SETTINGS, FILE=str(dump := tmp_path / "snapshot.pickle")).value
    # Live: 8 MiB of the engine and 0.5 of upstream; 16 are pending; the rest of 128 is idle.
    assert totals == [8.5, 16, 104]
    assert tiled == [True, True] and has_frames
    life = ["alloc", "free_requested", "free_completed"]
    assert block == life * 2
    assert segments == ["segment_alloc"] * 2 + ["segment_free"] * 2
    assert pending == life
    for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        assert "MemoryViz" in plot(pickle.loads(dump.read_bytes()))


def test_nothing_is_recorded_unless_asked_for(run):
    assert run("""
        use_gpu()
        kept = pinned(8)
        answer(torch.cuda.memory._snapshot()["host_traces"])
        """, **SETTINGS).value == [[]]


@pytest.mark.parametrize("which", ["fork", "stock"])
def test_the_programs_beside_it_read_what_pytorch_wrote(run, tmp_path, which):
    dump = tmp_path / "snapshot.pickle"
    # Several sizes, some of them used on a stream, some below the threshold, and an emptied cache.
    (requests,) = run("""
    use_gpu()
    torch.cuda.memory._record_memory_history(record_pinned_host_memory=True)
    kept, sizes = [pinned(3)], [3]
    for step in range(6):
        batch = []
        for mib in (8, 5.5, 0.25):
            batch.append(pinned(mib))
            sizes.append(mib)
        batch[0].to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        del batch
    torch._C._host_emptyCache()
    torch.cuda.memory._dump_snapshot(os.environ["FILE"])
    answer(len(sizes))
    """, which, FILE=str(dump)).value
    said, advice = (json.loads(command_line(it, dump, "--json", "--time-limit", "1", check=True).stdout) for it in ("plan", "advise"))
    assert said["requests"] == advice["counts"]["requests"] == requests
    # Stock's allocator, which has what is below the threshold, rounds sizes up to powers of two before it writes them down.
    live = {"fork": 4 + 8 + 5.5 + 0.25, "stock": 4 + 8 + 8 + 0.25}[which]
    assert said["peak_requested"] == live * (1 << 20)
    # The history says what was had from the driver.
    assert said["run_peak"] >= said["peak_requested"]
    assert said["hits"] > 0 and said["iterations"] > 1, said
    assert advice["counts"]["frees"] == requests - 1
