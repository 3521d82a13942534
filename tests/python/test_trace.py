"""A recorded trace is what the program did, whatever becomes of the program, and says where it waited for the driver. It becomes
a page, and a snapshot that PyTorch's own memory_viz draws. So does PyTorch's snapshot, which shows the engine's segments and blocks."""

import json
import pickle
import re

import pytest
import torch
from conftest import command_line, needs
from recorded import ops, read, waits
from torch.cuda import _memory_viz

SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "2", "BUDDY_THRESHOLD_MB": "1"}


def test_a_program_is_recorded_as_it_ran(traced):
    header, events, _, file = traced("""
small = torch.empty(1000, dtype=torch.uint8, pin_memory=True)
large = pinned(8)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    there = large.to("cuda", non_blocking=True)
stream.synchronize()
del large
pinned(2)
pinbuddy.iteration()
with torch.cuda.stream(stream):
    there = small.to("cuda", non_blocking=True)
stream.synchronize()
del small
torch.empty(300, dtype=torch.uint8, pin_memory=True)
torch._C._host_emptyCache()
""", **SETTINGS, RANK="1", WORLD_SIZE="1")
    assert (header["rank"], header["world_size"]) == (0, 1)
    assert header["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert (header["settings"]["BUDDY_BLOCK_SIZE_MB"], header["settings"]["BUDDY_THRESHOLD_MB"]) == (64, 1)
    assert ops(events, "id", "bytes", "stream") == [
        ("alloc", 1, 1000), ("alloc", 2, 8 << 20), ("event", 2, 0), ("free", 2), ("safe", 2), ("alloc", 3, 2 << 20), ("free", 3),
        ("iter",), ("event", 1, 0), ("free", 1), ("safe", 1), ("alloc", 4, 300), ("free", 4), ("clear",),
    ]
    assert file.stat().st_mode & 0o777 == 0o600


@needs(11, "private pools for pinned memory")
def test_requests_of_a_capture_are_recorded(traced):
    """Their blocks are the graph's, so nothing says when they are safe."""
    events = traced("""
use_gpu()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    host = torch.empty(3000, dtype=torch.uint8, pin_memory=True)
    there = host.to("cuda", non_blocking=True)
del host
""", **SETTINGS).events
    # PyTorch empties the cache before a capture.
    assert ops(events, "bytes", "private") == [("clear",), ("alloc", 3000, 1), ("event",), ("free",)]


def test_a_crash_leaves_what_came_before(traced, tmp_path):
    _, events, outcome, _ = traced(f"""
kept = [pinned(1) for _ in range(20)]
until(lambda: open({str(tmp_path / "trace.jsonl")!r}).read().count('"alloc"') == 20)
more = [pinned(2) for _ in range(200)]
os.kill(os.getpid(), 9)
""", whole=False, **SETTINGS)
    assert outcome.returncode == -9
    assert 20 <= len(events) <= 220 and set(ops(events)) == {("alloc",)}


def test_starting_and_stopping_again_and_again_and_a_program_that_pins_nothing_makes_no_file(run, tmp_path):
    run("pinbuddy.iteration()\n", BUDDY_TRACE=str(tmp_path / "trace"))
    assert list(tmp_path.iterdir()) == []
    assert run(f"""
folder = {str(tmp_path)!r}
older = [pinned(1), torch.empty(10, pin_memory=True)]
for i in range(5):
    pinbuddy.trace.start(f"{{folder}}/{{i}}.jsonl")
    assert "already" in refused(lambda: pinbuddy.trace.start(f"{{folder}}/again.jsonl"))
    kept = pinned(2)
    older.pop() if older else None
    for _ in range(i):
        torch.empty(20, pin_memory=True)
    pinbuddy.iteration()
    assert pinbuddy.trace.stop()
    assert not pinbuddy.trace.stop()
    del kept
    torch.empty(30, pin_memory=True)
""", **SETTINGS).warnings == []
    for i in range(5):
        _, events = read(tmp_path / f"{i}.jsonl")
        assert ops(events, "bytes") == [("alloc", 2 << 20)] + [("alloc", 20 * 4), ("free",)] * i + [("iter",)]
    assert not (tmp_path / "again.jsonl").exists()


def test_a_child_records_nothing_and_harms_nothing(traced, tmp_path):
    _, events, outcome, _ = traced(f"""
kept = [pinned(2), torch.empty(10, dtype=torch.uint8, pin_memory=True)]
def child():
    pinbuddy.iteration()
    kept.clear()
    why = refused(lambda: pinbuddy.trace.start({str(tmp_path / "child")!r}))
    assert "child" in why or "off" in why, why
    # A child that took the recording for its own would wait five seconds for a thread that it does not have.
    stopped = []
    assert seconds(lambda: stopped.append(pinbuddy.trace.stop())) < 4 and stopped == [False]
statuses = [forked(child, sys.exit) for _ in range(3)]
torch.empty(20, dtype=torch.uint8, pin_memory=True)
answer(statuses)
""", **SETTINGS)
    assert outcome.value == [[0, 0, 0]], outcome.stderr
    assert ops(events, "bytes")[:4] == [("alloc", 2 << 20), ("alloc", 10), ("alloc", 20), ("free",)]
    assert not (tmp_path / "child").exists()


# A pin takes 4 ms a MiB at least.
SLOW = {"PINBUDDY_SIM_PIN_MS_PER_GB": "4096", "BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"}


def check(found: list[tuple], expected: list[tuple]) -> None:
    """Waits of these sizes, each for as long as the driver took or somewhat longer, on a machine that others use, too."""
    assert [it[0] for it in found] == [it[0] for it in expected], found
    for (_, took), (_, least) in zip(found, expected, strict=True):
        assert least <= took < least * 3 + 300, found


def test_requests_that_pin_wait_and_those_that_hit_do_not(traced):
    events = traced("""
for step in range(3):
    [pinned(64), pinned(32)]
    pinbuddy.iteration()
""", waits=True, **SLOW).events
    check(waits(events), [(64, 256), (32, 128)])
    # Each right after its request, and over when the request was served.
    at = [i for i, it in enumerate(events) if it["op"] == "wait"]
    assert at == [1, 3]
    for i in at:
        assert [events[i][name] for name in ("id", "thread")] == [events[i - 1][name] for name in ("id", "thread")]
    # The recording has begun before the first request waited.
    assert events[1]["t"] >= 256e6


def test_requests_below_the_threshold_wait_as_well(traced):
    """PyTorch's own path pins for them: a power of two, once."""
    events = traced("kept = [pinned(33)]\nkept = []\nkept = [pinned(40)]", waits=True, **SLOW, BUDDY_THRESHOLD_MB="512").events
    check(waits(events), [(33, 256)])


def test_emptying_the_cache_waits_for_what_it_unpins_and_only_then(traced):
    events = traced("""
torch._C._host_emptyCache()
pinned(1), pinned(64)
torch._C._host_emptyCache()
torch._C._host_emptyCache()
""", waits=True, BUDDY_WARMUP="off", BUDDY_GROWTH="exact").events
    kinds = [it["op"] + (" for a request" if it["op"] == "wait" and "id" in it else "") for it in events]
    # PyTorch's own memory goes first.
    assert kinds == [
        *["clear", "alloc", "wait for a request", "alloc", "wait for a request", "free", "free"],
        *["wait", "clear", "wait", "clear"],
    ]


def test_what_a_program_did_is_in_its_page_and_memory_viz_draws_its_snapshot(traced, tmp_path):
    file = traced("""
for step in range(3):
    [pinned(1 + i) for i in range(8)]
""", BUDDY_BLOCK_SIZE_MB="64").file
    assert "24 requests" in command_line("report", file, check=True).stdout
    page = (tmp_path / "trace.report.html").read_text()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["peak"] == sum(range(1, 9)) << 20
    assert [it["name"] for it in data["allocators"]][0] == "stock"
    snapshot = tmp_path / "viz.pickle"
    command_line("report", file, "--format", "snapshot", "-o", snapshot, check=True)
    data = pickle.loads(snapshot.read_bytes())
    actions = [it["action"] for it in data["device_traces"][0]]
    assert actions.count("alloc") == actions.count("free_completed") == 24
    assert len(data["segments"]) == actions.count("segment_alloc") - actions.count("segment_free")
    for draw in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        assert "<script" in draw(data)
    assert "cudaMalloc" in _memory_viz.trace(data)
    assert f"segments: {len(data['segments'])}\n" in _memory_viz.segsum(data)
    assert "<script" in _memory_viz.trace_plot(data, plot_segments=True)
    # The browser's own part is tests/page/test_memory_viz.py.
    assert "<script" in _memory_viz.trace_plot(data, filter_freed=True)


SHOWN = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "2", "BUDDY_WARMUP": "sync"}
HAS_HISTORY = needs(14, "a history of pinned memory")


@HAS_HISTORY
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
    """, **SHOWN, FILE=str(dump := tmp_path / "snapshot.pickle")).value
    # Live: 8 MiB of the engine and 0.5 of upstream; 16 are pending; the rest of 128 is idle.
    assert totals == [8.5, 16, 104]
    assert tiled == [True, True] and has_frames
    life = ["alloc", "free_requested", "free_completed"]
    assert block == life * 2
    assert segments == ["segment_alloc"] * 2 + ["segment_free"] * 2
    assert pending == life
    for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        assert "MemoryViz" in plot(pickle.loads(dump.read_bytes()))


@HAS_HISTORY
def test_nothing_is_recorded_unless_asked_for(run):
    assert run("""
        use_gpu()
        kept = pinned(8)
        answer(torch.cuda.memory._snapshot()["host_traces"])
        """, **SHOWN).value == [[]]


@HAS_HISTORY
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
