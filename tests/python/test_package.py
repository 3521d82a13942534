"""The Python package on a machine with a GPU, without one, and when disabled; and `pinbuddy.memory_summary()`, the table that people
read."""

import inspect
import operator
import re
import types
import typing
from pathlib import Path

import pinbuddy
import pytest
from conftest import MIB
from pinbuddy import _summary, _types
from plugin import IS_PLUGIN
from program import engine_segment, hold
from table import answers

NO_GPU = {"PINBUDDY_SIM_DEVICES": "0"}
# Two segments, pinned by the first request or warm_up().
SMALL = {"BUDDY_BLOCK_SIZE_MB": "16", "BUDDY_BLOCK_COUNT": "2", "BUDDY_WARMUP": "sync"}


@pytest.mark.release
def test_the_version_is_the_wheels(torch):
    assert pinbuddy.enabled() and pinbuddy.version() == pinbuddy.__version__
    assert ".pinbuddy." in pinbuddy.version()
    # In a fork, torch's own version; an official torch with the plug-in keeps its.
    assert pinbuddy.version().startswith(torch.__version__) and torch.__version__ == torch.version.__version__
    assert (".pinbuddy." in torch.__version__) is not IS_PLUGIN
    assert IS_PLUGIN or pinbuddy.version() == torch.__version__


def test_segments_show_where_a_tensors_block_lies_and_active_and_idle_make_up_what_is_pinned(torch, pinned):
    pinbuddy.warm_up(wait=True)
    tensor, freed = pinned(8 * MIB + 1), pinned(9 * MIB)
    hold()
    freed.to("cuda", non_blocking=True)
    address = freed.data_ptr()
    del freed
    own = engine_segment(tensor)
    (segment,) = [it for it in pinbuddy.segments() if it["address"] == own["address"]]
    blocks = {it["offset"]: (it["bytes"], it["state"]) for it in segment.pop("blocks")}
    assert blocks == {tensor.data_ptr() - own["address"]: (8 * MIB + 4096, "live"), address - own["address"]: (9 * MIB, "pending")}
    assert segment == own, "the rest is what stats() says"
    engine = pinbuddy.stats()["engine"]
    assert (engine["active_bytes"]["current"], engine["pending_bytes"]["current"]) == (17 * MIB + 4096, 9 * MIB)
    assert engine["active_bytes"]["current"] + engine["idle_bytes"] == engine["pinned_bytes"]["current"]
    assert engine["pinned_bytes"]["current"] == sum(it["bytes"] for it in pinbuddy.stats()["segments"])


@pytest.mark.release
def test_the_data_have_the_shapes_that_the_types_promise_and_document(torch, pinned):
    live = pinned(8 * MIB)
    for function in (pinbuddy.stats, pinbuddy.segments, pinbuddy.config):
        fits(function(), typing.get_type_hints(function)["return"], function.__name__)
    del live
    assert (Path(pinbuddy.__file__).parent / "py.typed").exists()
    shapes = [it for it in vars(_types).values() if typing.is_typeddict(it)]
    assert len(shapes) > 5 and all(it.__doc__ for it in shapes)


def fits(value, kind, name: str) -> None:
    """Requires that ``value`` has the shape of ``kind``: no type checker sees both."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind)
        assert value.keys() == hints.keys(), name
        for key, hint in hints.items():
            fits(value[key], hint, f"{name}.{key}")
    elif origin is typing.Literal:
        assert value in arguments, name
    elif origin is types.UnionType:
        matching = [it for it in arguments if it is type(value) or typing.is_typeddict(it)]
        assert matching, name
        if value is not None:
            fits(value, matching[0], name)
    elif origin is list:
        for it in value:
            fits(it, arguments[0], f"{name}[]")
    elif origin is dict:
        for key, it in value.items():
            fits(it, arguments[1], f"{name}[{key}]")
    else:
        assert type(value) is kind, name


MODULES = ["trace.start", "trace.stop", "device.enable", "device.stats"]
FUNCTIONS = [*sorted(set(pinbuddy.__all__) - {"trace", "device"}), *MODULES]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_is_annotated_and_documented(name):
    function = operator.attrgetter(name)(pinbuddy)
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter
    assert inspect.getdoc(function)


@pytest.mark.parametrize("name", ["u\0v", b"u\0v"])
def test_a_file_name_with_a_zero_is_refused_as_open_refuses_it(name):
    enable, start = pinbuddy.device.enable, pinbuddy.trace.start
    for use in (lambda: open(name), lambda: start(name), lambda: enable(plan=name), lambda: enable(trace=name)):
        with pytest.raises(ValueError, match="embedded null"):
            use()


test_calls_of_the_package = answers({
    "warm_up pins the blocks and tells PyTorch": ("""
        before = len(pinbuddy.segments())
        done = pinbuddy.warm_up(wait=True)
        # Or a child forked from now on would use a broken CUDA.
        answer(before, done, len(pinbuddy.segments()), torch.cuda.is_initialized(), warm_up())
    """, [0, True, 2, True, {"mode": "off", "phase": "done", "pinned": 2, "owed": 0, "stopped": None}], SMALL | {"BUDDY_WARMUP": "off"}),
    # At this pace a segment takes half a second.
    "warm_up does not wait unless it is asked to": ("""
        done = pinbuddy.warm_up()
        phase = warm_up()["phase"]
        pinbuddy.warm_up(wait=True)
        answer(done, phase, warm_up()["phase"])
    """, [True, "running", "done"], SMALL | {"PINBUDDY_SIM_PIN_MS_PER_GB": 32_000}),
    "empty_cache is PyTorch's own where the engine is off": ("""
        use_gpu()  # before which PyTorch's own function does nothing
        pinned(8)
        before = host_stats()["allocated_bytes.current"]
        pinbuddy.empty_cache()
        answer(before, host_stats()["allocated_bytes.current"])
    """, [8 * MIB, 0], {"BUDDY_DISABLE": 1}),
})


@pytest.mark.release
@pytest.mark.parametrize("gpu, disabled", [(NO_GPU, False), ({}, True), (NO_GPU, True)])
def test_with_no_gpu_or_disabled_nothing_is_pinned_and_nothing_fails(run, gpu, disabled):
    outcome = run("""
    calls = [pinbuddy.enabled(), pinbuddy.warm_up(wait=True), pinbuddy.empty_cache(), torch.cuda.is_initialized(), pinbuddy.segments()]
    answer(calls, torch.cuda.is_available(), pinbuddy.stats(), pinbuddy.memory_summary())
    """, **gpu, **(SMALL | {"BUDDY_DISABLE": 1} if disabled else {}))
    calls, available, stats, summary = outcome.value
    assert (calls, available) == ([False, False, None, False, []], gpu == {})
    if disabled:
        assert stats["state"] == "off" and "off" in summary and "BUDDY_DISABLE=1" in summary and "\n" not in summary
    else:
        assert stats["segments"] == [] and stats["budget"] is None and "nothing pinned" in summary and "cold" in summary
    assert outcome.stderr == ""


GIB = 1 << 30
gauge = lambda *counts: dict(zip(("current", "peak", "allocated", "freed"), counts, strict=True))


def segment(kind: str, size: int, free: int, run: int, huge=None, page=None, node=None, home=None):
    memory = {"backing": "pages" if page else "cuda", "page_bytes": page, "huge_bytes": huge}
    counts = {"kind": kind, "bytes": size, "free_bytes": free, "largest_free_run_bytes": run}
    active = {"live_bytes": size - free, "pending_bytes": 0}
    return counts | active | memory | {"numa_node": node, "home_node": home}


STATS = {
    "state": "on",
    "warm_up": {"mode": "background", "phase": "paused", "pinned": 8, "owed": 4, "stopped": "cudaHostAlloc failed: out of memory"},
    "budget": {"bytes": 63 * GIB + GIB // 2, "why": "half of the 127 GiB of MemAvailable, shared by 2 processes (LOCAL_WORLD_SIZE)"},
    "engine": {
        "pinned_bytes": gauge(6 * GIB, 10 * GIB, 1030 * GIB, 1024 * GIB),
        "segments": gauge(5, 9, 1029, 1024),
        "active_bytes": gauge(2 * GIB + 259 * MIB, 8 * GIB, 4096 * GIB, 4093 * GIB),
        "active_blocks": gauge(4, 71, 1_234_567, 1_234_563),
        "pending_bytes": gauge(4096, 512 * MIB, 9 * GIB, 9 * GIB - 4096),
        "pending_blocks": gauge(1, 4, 90, 89),
        "idle_bytes": 3 * GIB + 765 * MIB - 4096, "dedicated_bytes": 2 * GIB, "largest_free_run_bytes": GIB,
        "hits": 1_234_567, "misses": 1029,
    },
    "plan": None,
    "segments": [
        segment("dedicated", 2 * GIB, 0, 0),
        segment("large", GIB, 865 * MIB - 4096, 700 * MIB, GIB, 2 * MIB, 1),
        segment("small", GIB, 924 * MIB, 800 * MIB, 990 * MIB, 2 * MIB, 1),
        segment("idle", GIB, GIB, GIB, GIB, 2 * MIB, 1),
        segment("idle", GIB, GIB, GIB, 0, 4096),
    ],
}

@pytest.mark.checkout("the page is in docs")
def test_the_table_in_the_documentation_is_what_people_read():
    page = (Path(__file__).parents[2] / "docs/python.md").read_text()
    (table,) = re.findall(r"^```\n(\|==.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    assert _summary.summary(STATS) == table


def test_a_plan_and_the_devices_of_a_node_have_a_row_where_they_are():
    counts = {"pinned": True, "hits": 987, "misses": 3, "unplanned": 10, "borrowed": 0}
    counts |= {"drift": 2, "resyncs": 1, "given_up": 1}
    segments = [segment("planned", GIB, 0, 0), *STATS["segments"]]
    table = _summary.summary(STATS | {"plan": counts, "segments": segments})
    assert cells(table, "Segments by kind")[0].startswith("1 planned, 1 large")
    assert cells(table, "Largest free block") == ["1 GiB outside the plan"]
    text = " ".join(it.strip("| ") for it in table.splitlines()[-6:])
    assert "98.7 % of 1000 requests got their place; 3 found it taken, 10 not in the plan, 2 times out of step" in text
    assert "1 time back in step, 1 time given up" in text
    nothing = dict.fromkeys(counts, 0) | {"pinned": False}
    assert cells(_summary.summary(STATS | {"plan": nothing}), "Plan") == ["no request yet"]
    parts = [("large", 2, 1, 0), ("idle", 1, 1, 1), ("small", 4, 3, 0), ("idle", 1, 1, None)]
    segments = [segment(kind, size * GIB, free * GIB, free * GIB, home=node) for kind, size, free, node in parts]
    (row,) = cells(_summary.summary(STATS | {"segments": segments}), "For devices on")
    assert row == "node 0: 6 GiB, 2 GiB active; node 1: 1 GiB, 0 B"
    assert _summary._by_node(segments) == f"{row} active; an unknown node: 1 GiB, 0 B active"
    assert "For devices on" not in _summary.summary(STATS)


def test_the_summary_counts_what_is_live_and_what_is_idle(torch, pinned):
    pinbuddy.warm_up(wait=True)
    tensor = pinned(8 * MIB)
    engine = pinbuddy.stats()["engine"]
    summary = pinbuddy.memory_summary()
    for table in (_summary.summary(STATS), summary):
        assert len({len(line) for line in table.splitlines()}) == 1, table
    assert cells(summary, "Active")[0] == "8.0 MiB"
    assert cells(summary, "Active blocks")[0] == "1"
    assert cells(summary, "Pinned (allocated)")[0] == _summary.size_text(engine["pinned_bytes"]["current"])
    assert cells(summary, "Idle")[0] == _summary.size_text(engine["idle_bytes"])
    assert "1 large" in cells(summary, "Segments by kind")[0]
    del tensor
    assert cells(pinbuddy.memory_summary(), "Active")[0] == "0 B"


def cells(summary: str, label: str) -> list[str]:
    (line,) = [it for it in summary.splitlines() if it.startswith(f"| {label}  ")]
    return [it.strip() for it in line.strip("|").split("|")][1:]


def test_sizes_read_as_people_say_them_and_idle_and_dedicated_segments_are_not_fragmented():
    idle = [segment("idle", GIB, GIB, GIB)] * 3
    dedicated = segment("dedicated", 2 * GIB, 2 * GIB, 0)
    assert [_summary.fragmentation(it) for it in ([], [dedicated], [*idle, dedicated])] == [0, 0, 0]
    assert _summary.fragmentation([segment("large", GIB, 64 * MIB, 16 * MIB)]) == 0.75
    for size, text in [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (135_790_592, "129.5 MiB"), (GIB - 1, "1.0 GiB"), (1536 * GIB, "1.5 TiB"),
        (1 << 60, "1024.0 PiB"),
    ]:
        assert _summary.size_text(size).rstrip() == text


def test_the_warm_up_and_the_budget_are_put_in_words():
    for mode, phase, done, owed, text in [
        ("off", "cold", 0, 8, "off: nothing is pinned ahead, unless by warm_up()"),
        ("sync", "cold", 0, 1, "sync, cold: 0 segments pinned, 1 owed"),
        ("background", "done", 1, 0, "background, done: 1 segment pinned"),
    ]:
        warm_up = {"mode": mode, "phase": phase, "pinned": done, "owed": owed, "stopped": None}
        assert cells(_summary.summary(STATS | {"warm_up": warm_up}), "Warm-up") == [text]
    for budget, text in [
        ({"bytes": (1 << 64) - 1, "why": "since no limit is known"}, "none, since no limit is known"),
        (None, "decided when something is first pinned"),
    ]:
        assert cells(_summary.summary(STATS | {"budget": budget}), "Budget") == [text]


@pytest.mark.parametrize("state", ["off", "retired", "forked", "on"])
def test_off_is_one_line_with_a_reason(state):
    summary = _summary.summary(STATS | {"state": state, "engine": None})
    reason = {"off": "BUDDY_DISABLE=1", "forked": "forked child"}.get(state, "retired")
    assert re.fullmatch(f"pinbuddy is off: .*{reason}.*\\.", summary)
