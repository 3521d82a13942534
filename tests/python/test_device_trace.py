"""BUDDY_DEVICE_TRACE: what a program does with device memory, in the format of BUDDY_TRACE; and plans made of that."""

import functools
import json
from collections import Counter

from conftest import command_line
from device_plans import MIB, TRAINING
from recorded import ops, read

plan = functools.partial(command_line, "plan", check=True)


def test_a_program_is_recorded_as_it_ran(traced):
    """A place that another stream uses is safe only once that stream is done, whoever asks meanwhile."""
    header, events, outcome, file = traced("""
    side = torch.cuda.Stream()
    large, small = block(3), block(1000 / MIB)
    del small
    out = torch.zeros(3 * MIB, dtype=torch.uint8).pin_memory()
    with torch.cuda.stream(side):
        torch.cuda._sleep(400_000_000)
        out.copy_(large, non_blocking=True)
        beside = block(5)
    large.record_stream(side)
    del large
    other = block(2)
    pinbuddy.iteration()
    torch.cuda.synchronize()
    again = block(4)
    del other, again, beside
    torch.cuda.empty_cache()
    """, device=True, RANK="1", WORLD_SIZE="1")
    assert outcome.warnings == []
    assert header["memory"] == "device" and (header["rank"], header["world_size"]) == (0, 1)
    ids = {(it["bytes"], it["stream"]): it["id"] for it in events if it["op"] == "alloc"}
    assert list(ids) == [(3 * MIB, 0), (1000, 0), (5 * MIB, 1), (2 * MIB, 0), (4 * MIB, 0)]
    large, small, beside, other, again = ids.values()
    blocks = [it for it in ops(events, "id") if not it[0].startswith("segment")]
    assert blocks == [
        ("alloc", large), ("alloc", small), ("free", small), ("alloc", beside), ("event", large), ("free", large), ("alloc", other),
        ("iter",), ("safe", large), ("alloc", again), ("free", other), ("free", again), ("free", beside),
    ]
    assert [it["stream"] for it in events if it["op"] == "event"] == [1]
    came, went = (sum(it["bytes"] for it in events if it["op"] == op) for op in ("segment_alloc", "segment_free"))
    # Empty in the end, and never more than what three segments of 20 MiB and one for small blocks have.
    assert 0 < came == went <= 62 * MIB
    assert file.stat().st_mode & 0o777 == 0o600


def test_enabled_with_a_plan_the_requests_are_the_same_and_its_region_is_none_and_a_trace_becomes_a_plan_as_good(run, tmp_path):
    own, made, *files = (tmp_path / it for it in ("own.json", "device.json", "first", "second"))
    # As the variables would.
    enabled = f"""
    pinbuddy.device.enable(plan={str(own)!r}, trace=os.environ["TRACE"])
    """ + TRAINING
    stock, planned = (run(enabled, TRACE=str(file)).quiet.value for file in files)
    assert stock["device"] is None and planned["device"][0]["hits"] == planned["asked"]
    events = [read(file)[1] for file in files]
    first, second = ([(it["bytes"], it["device"], it["stream"]) for it in all if it["op"] == "alloc"] for all in events)
    assert first == second and sum(size > MIB for size, *_ in second) == planned["asked"]
    first, second = (Counter(it["op"] for it in all if "segment" not in it["op"]) for all in events)
    assert first == second
    # A trace, its plan, and a run with that: every request from 256 KiB on has its place.
    said = plan(files[0], "--out", made, "--time-limit", "5")
    assert f"BUDDY_DEVICE_PLAN={made}\n" in said.stdout, said.stdout
    outcome = run(TRAINING, BUDDY_DEVICE_PLAN=str(made)).quiet
    (stream,) = outcome.value["device"]
    assert stream["hits"] == outcome.value["asked"] and stream["misses"] == stream["unplanned"] == 0, stream
    # As good as the plan that a run makes of itself.
    reserved = [sum(json.loads(it.read_text())["plans"][0]["plan"]["regions"]) for it in (made, own)]
    assert reserved[0] <= reserved[1], reserved


def test_a_snapshot_becomes_a_plan(run, tmp_path):
    file, made = tmp_path / "snapshot.pickle", tmp_path / "device.json"
    program = """
    if os.environ.get("SNAPSHOT"):
        torch.cuda.memory._record_memory_history(context=None, stacks="python")
    for _ in range(30):
        [block(mib) for mib in (3, 5, 4)]
    if os.environ.get("SNAPSHOT"):
        torch.cuda.memory._dump_snapshot(os.environ["SNAPSHOT"])
    print(json.dumps([torch.__version__.split("+")[0], pinbuddy.device.stats()]))
    """
    version, _ = run(program, SNAPSHOT=str(file)).value
    refused = plan(file, "--device", "0", "--out", made, check=False)
    assert refused.returncode == 1 and "--torch VERSION" in refused.stderr, refused.stderr
    plan(file, "--device", "0", "--out", made, "--torch", version)
    (stream,) = run(program, BUDDY_DEVICE_PLAN=str(made)).quiet.value[1]
    assert (stream["hits"], stream["reserved_bytes"]) == (90, 12 * MIB)


def test_one_file_may_have_both_memories(traced, tmp_path):
    made = tmp_path / "device.json"
    header, events, outcome, file = traced("""
    for _ in range(20):
        one = block(13)
        host = pinned(6)
        del one, host
        block(25)
    assert pinbuddy.trace.stop()
    """, BUDDY_DEVICE_TRACE=str(tmp_path / "trace.jsonl"))
    assert outcome.warnings == []
    assert header["memory"] == "both"
    counts = Counter((it["bytes"], it.get("device")) for it in events if it["op"] == "alloc")
    assert counts == {(13 * MIB, 0): 20, (25 * MIB, 0): 20, (6 * MIB, None): 20}
    assert "BUDDY_PLAN=FILE" in plan(file).stdout
    plan(file, "--device", "0", "--out", made)
    assert json.loads(made.read_text())["format"] == "pinbuddy-device-plan"
    refused = plan(file, "--device", "3", check=False)
    assert "it has that of: pinned memory, 0" in refused.stderr, refused.stderr


def test_what_no_plan_serves_is_told_apart_and_a_stream_that_a_library_allocates_for_does_not_shift_the_others(run, tmp_path):
    """A plan's streams are numbered as they ask for planned memory; this one does not."""
    program = """
    side = torch.cuda.Stream()
    kept = torch.cuda.caching_allocator_alloc(2 * MIB, stream=side)
    for _ in range(30):
        [block(mib) for mib in (13, 5)]
    print(json.dumps(pinbuddy.device.stats()))
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        inside = block(3)
    with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
        pooled = block(4)
    """
    own, file, made = tmp_path / "own.json", tmp_path / "trace", tmp_path / "made.json"
    run(program, BUDDY_DEVICE_PLAN=str(own), BUDDY_DEVICE_TRACE=str(file))
    found = {it["bytes"] // MIB: it.get("private", 0) for it in read(file)[1] if it["op"] == "alloc" and it["bytes"] >= 2 * MIB}
    assert found == {2: 1, 3: 1, 4: 1, 5: 0, 13: 0}
    plan(file, "--out", made)
    for it in (own, made):
        (stream,) = run(program, BUDDY_DEVICE_PLAN=str(it)).value
        assert (stream["stream"], stream["hits"]) == (0, 60), (it, stream)


def test_enable_says_why_it_does_not(run, tmp_path):
    head = """
    enable = lambda **what: refused(lambda: pinbuddy.device.enable(**what))
    """
    nothing, fine, twice = run(head + f"answer(enable(), *(enable(trace={str(tmp_path)!r} + '/file') for _ in range(2)))").value
    assert "enable(plan='device.plan')" in nothing
    assert fine is None
    assert "in force already" in twice
    (late,) = run(head + """
    use_gpu()
    answer(enable(plan="device.plan"))
    """).value
    assert "CUDA not to be initialised" in late and "BUDDY_DEVICE_PLAN" in late
    (off,) = run(head + 'answer(enable(plan="device.plan"))', BUDDY_DISABLE="1").value
    assert "off" in off
