"""The Python package: what it says and does, on a machine with a GPU, with none, and when off."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import types
import typing
from pathlib import Path

import pinbuddy
import pytest
from conftest import MIB, engine_segment
from pinbuddy import _summary, _types
from pinbuddy.__main__ import settings_table

GIB = 1 << 30
NO_GPU = {"PINBUDDY_SIM_DEVICES": "0"}
# Two segments, pinned by the first request or by warm_up().
SMALL = {"BUDDY_BLOCK_SIZE_MB": "16", "BUDDY_BLOCK_COUNT": "2", "BUDDY_WARMUP": "sync"}


@pytest.fixture
def command():
    """``command("--json", VARIABLE=value)``: runs ``python -m pinbuddy``."""

    def command(*arguments: str, python: str = sys.executable, **variables: str):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BUDDY_")}
        return subprocess.run(
            [python, "-m", "pinbuddy", *arguments],
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return command


# What each function says.


def test_the_version_is_the_wheels(torch):
    assert pinbuddy.version() == pinbuddy.__version__ == torch.__version__
    assert "pinbuddy" in pinbuddy.version()


@pytest.mark.parametrize("variables, on", [({}, True), ({"BUDDY_DISABLE": "1"}, False)])
def test_enabled_follows_the_switch(run, variables, on):
    program = "import json, pinbuddy; print(json.dumps(pinbuddy.enabled()))"
    assert run(program, **variables).value is on


def test_segments_show_where_a_tensors_block_lies(torch, pinned):
    tensor, freed = pinned(8 * MIB + 1), pinned(9 * MIB)
    torch.cuda._sleep(1_000_000_000)
    freed.to("cuda", non_blocking=True)
    address = freed.data_ptr()
    del freed
    own = engine_segment(tensor)
    (segment,) = [it for it in pinbuddy.segments() if it["address"] == own["address"]]
    blocks = {it["offset"]: (it["bytes"], it["state"]) for it in segment.pop("blocks")}
    assert blocks == {
        tensor.data_ptr() - own["address"]: (8 * MIB + 4096, "live"),
        address - own["address"]: (9 * MIB, "pending"),
    }
    assert segment == own, "the rest is what stats() says"


def test_the_data_have_the_shapes_that_the_types_promise(torch, pinned):
    live = pinned(8 * MIB)
    for function in (pinbuddy.stats, pinbuddy.segments, pinbuddy.config):
        fits(function(), typing.get_type_hints(function)["return"], function.__name__)
    del live


def test_a_forked_childs_stats_have_the_same_keys(run):
    program = """
        import json, os, pinbuddy
        if (child := os.fork()) == 0:
            print(json.dumps(pinbuddy.stats()), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    """
    stats = run(program).value
    fits(stats, _types.Stats, "stats")
    assert stats["state"] == "forked"


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


@pytest.mark.parametrize("name", sorted(pinbuddy.__all__))
def test_every_public_function_is_annotated_and_documented(name):
    function = getattr(pinbuddy, name)
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter
    assert inspect.getdoc(function)


def test_the_package_is_marked_as_typed_and_documents_its_types():
    assert (Path(pinbuddy.__file__).parent / "py.typed").exists()
    shapes = [it for it in vars(_types).values() if typing.is_typeddict(it)]
    assert len(shapes) > 5 and all(it.__doc__ for it in shapes)


# What it does.


def test_warm_up_pins_the_blocks_and_tells_pytorch(run):
    program = """
        import json, pinbuddy, torch
        before = len(pinbuddy.segments())
        done = pinbuddy.warm_up(wait=True)
        print(json.dumps([before, done, len(pinbuddy.segments()), torch.cuda.is_initialized(),
                          pinbuddy.stats()["warm_up"]]))
    """
    before, done, after, initialized, warm_up = run(program, **SMALL | {"BUDDY_WARMUP": "off"}).value
    assert [before, done, after] == [0, True, 2]
    assert initialized, "or a child forked from now on would use a broken CUDA"
    expected = {"mode": "off", "phase": "done", "pinned": 2, "owed": 0, "stopped": None}
    assert warm_up == expected


def test_warm_up_does_not_wait_unless_it_is_asked_to(run):
    program = """
        import json, pinbuddy, time
        start = time.monotonic()
        done = pinbuddy.warm_up()
        phase = pinbuddy.stats()["warm_up"]["phase"]
        pinbuddy.warm_up(wait=True)
        print(json.dumps([done, phase, pinbuddy.stats()["warm_up"]["phase"]]))
    """
    # A driver's pace, so that a segment takes half a second.
    outcome = run(program, **SMALL, PINBUDDY_SIM_PIN_MS_PER_GB=32_000)
    assert outcome.value == [True, "running", "done"]


def test_empty_cache_gives_back_what_is_idle_in_both_mechanisms(run):
    program = """
        import json, pinbuddy, torch
        torch.cuda.init()
        large = torch.empty(8 << 20, dtype=torch.uint8, pin_memory=True)
        small = torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)
        del small
        pinned = lambda: torch.cuda.host_memory_stats()["allocated_bytes.current"]
        before = pinned()
        nothing = pinbuddy.empty_cache()
        print(json.dumps([before, pinned(), nothing]))
    """
    assert run(program, **SMALL).value == [33 * MIB, 16 * MIB, None]


def test_empty_cache_is_pytorchs_own_where_the_engine_is_off(run):
    program = """
        import json, pinbuddy, torch
        torch.empty(1, device="cuda")  # before which PyTorch's own function does nothing
        torch.empty(8 << 20, dtype=torch.uint8, pin_memory=True)
        pinned = lambda: torch.cuda.host_memory_stats()["allocated_bytes.current"]
        before = pinned()
        pinbuddy.empty_cache()
        print(json.dumps([before, pinned()]))
    """
    assert run(program, BUDDY_DISABLE=1).value == [8 * MIB, 0]


# Where there is nothing to do.

EVERYTHING = """
    import json, pinbuddy, torch
    print(json.dumps({
        "enabled": pinbuddy.enabled(),
        "warm_up": pinbuddy.warm_up(wait=True),
        "empty_cache": pinbuddy.empty_cache(),
        "initialized": torch.cuda.is_initialized(),
        "stats": pinbuddy.stats(),
        "segments": pinbuddy.segments(),
        "summary": pinbuddy.memory_summary(),
    }))
"""


def test_with_no_gpu_nothing_is_pinned_and_nothing_fails(run):
    outcome = run(EVERYTHING, **NO_GPU)
    said = outcome.value
    assert said["enabled"] and said["warm_up"] is False and not said["initialized"]
    assert said["segments"] == said["stats"]["segments"] == []
    assert said["stats"]["budget"] is None
    assert "nothing pinned" in said["summary"] and "cold" in said["summary"]
    assert outcome.stderr == ""


def test_disabled_it_says_so_in_one_line(run):
    outcome = run(EVERYTHING, **SMALL, BUDDY_DISABLE=1)
    said = outcome.value
    assert not said["enabled"] and said["warm_up"] is False and not said["initialized"]
    assert said["stats"]["state"] == "off" and said["segments"] == []
    assert "off" in said["summary"] and "BUDDY_DISABLE=1" in said["summary"]
    assert "\n" not in said["summary"]
    assert outcome.stderr == ""


def test_disabled_with_no_gpu_nothing_fails(run):
    outcome = run(EVERYTHING, **NO_GPU, BUDDY_DISABLE=1)
    assert outcome.value["warm_up"] is False and outcome.stderr == ""


def test_a_forked_child_can_ask_and_is_told_at_once(run):
    """The locks of the parent's allocator may be held in any of these children, for ever."""
    program = """
        import json, os, pinbuddy, signal, threading, torch
        # PyTorch's own would wait for the lock, but not in every run.
        torch.accelerator.empty_host_cache = lambda: os._exit(3)
        over = threading.Event()
        def pin_and_give_back():
            while not over.is_set():
                blocks = [torch.empty(5 << 20, dtype=torch.uint8, pin_memory=True) for _ in range(9)]
                small = [torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True) for _ in range(9)]
                del blocks, small
                pinbuddy.empty_cache()
        threads = [threading.Thread(target=pin_and_give_back) for _ in range(3)]
        for thread in threads:
            thread.start()
        while not pinbuddy.segments():
            pass
        answers = []
        for _ in range(30):
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # which ends a child that waits for a lock
                said = [pinbuddy.stats()["state"], pinbuddy.enabled(), pinbuddy.segments(),
                        pinbuddy.warm_up(wait=True), pinbuddy.empty_cache(),
                        pinbuddy.memory_summary(), len(pinbuddy.config()) > 5]
                os.write(writing, json.dumps(said).encode())
                os._exit(0)
            os.close(writing)
            said = os.read(reading, 1 << 16)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            answers.append([status, json.loads(said) if said else None])
            os.close(reading)
            if status != 0:
                break
        over.set()
        for thread in threads:
            thread.join()
        print(json.dumps(answers))
    """
    answers = run(program, **SMALL).value
    for status, said in answers:
        assert status == 0, "the child waited for its parent's lock, or failed"
        *facts, summary, has_config = said
        assert facts == ["forked", False, [], False, None]
        assert summary.startswith("pinbuddy is off: ") and "forked child" in summary
        assert has_config
    assert len(answers) == 30


# The table.


def gauge(current: int, peak: int, allocated: int, freed: int):
    return {"current": current, "peak": peak, "allocated": allocated, "freed": freed}


def segment(kind: str, size: int, free: int, run: int, huge=None, page=None, node=None):
    memory = {"backing": "pages" if page else "cuda", "page_bytes": page, "huge_bytes": huge}
    counts = {"kind": kind, "bytes": size, "free_bytes": free, "largest_free_run_bytes": run}
    return counts | memory | {"numa_node": node}


STATS = {
    "state": "on",
    "warm_up": {
        "mode": "background",
        "phase": "paused",
        "pinned": 8,
        "owed": 4,
        "stopped": "cudaHostAlloc failed: out of memory",
    },
    "budget": {
        "bytes": 63 * GIB + GIB // 2,
        "why": "half of the 127 GiB of MemAvailable, shared by 2 processes (LOCAL_WORLD_SIZE)",
    },
    "engine": {
        "pinned_bytes": gauge(6 * GIB, 10 * GIB, 1030 * GIB, 1024 * GIB),
        "segments": gauge(5, 9, 1029, 1024),
        "live_bytes": gauge(2 * GIB + 259 * MIB, 8 * GIB, 4096 * GIB, 4093 * GIB),
        "live_blocks": gauge(4, 71, 1_234_567, 1_234_563),
        "pending_bytes": gauge(4096, 512 * MIB, 9 * GIB, 9 * GIB - 4096),
        "pending_blocks": gauge(1, 4, 90, 89),
        "idle_bytes": 3 * GIB + 765 * MIB - 4096,
        "dedicated_bytes": 2 * GIB,
        "largest_free_run_bytes": GIB,
        "hits": 1_234_567,
        "misses": 1029,
    },
    "segments": [
        segment("dedicated", 2 * GIB, 0, 0),
        segment("large", GIB, 865 * MIB - 4096, 700 * MIB, GIB, 2 * MIB, 1),
        segment("small", GIB, 924 * MIB, 800 * MIB, 990 * MIB, 2 * MIB, 1),
        segment("idle", GIB, GIB, GIB, GIB, 2 * MIB, 1),
        segment("idle", GIB, GIB, GIB, 0, 4096),
    ],
}

TABLE = """\
|==========================================================================|
|                       pinbuddy: pinned host memory                       |
|--------------------------------------------------------------------------|
|        Metric        |  Current   |    Peak    | Tot alloc  | Tot freed  |
|==========================================================================|
| Pinned (allocated)   |    6.0 GiB |   10.0 GiB |    1.0 TiB |    1.0 TiB |
|   of it dedicated    |    2.0 GiB |            |            |            |
| Live (active)        |    2.3 GiB |    8.0 GiB |    4.0 TiB |    4.0 TiB |
| Pending              |    4.0 KiB |  512.0 MiB |    9.0 GiB |    9.0 GiB |
| Idle                 |    3.7 GiB |            |            |            |
|--------------------------------------------------------------------------|
| Segments             |          5 |          9 |       1029 |       1024 |
| Live blocks          |          4 |         71 |    1234567 |    1234563 |
| Pending blocks       |          1 |          4 |         90 |         89 |
|--------------------------------------------------------------------------|
| Largest free block   | 1 GiB                                             |
| Fragmentation        | 7.5 %                                             |
| Hit rate             | 99.9 % (1234567 hits, 1029 misses)                |
| Segments by kind     | 1 large, 1 small, 1 dedicated, 2 idle             |
| Memory               | 2 GiB by CUDA; 2 GiB in pages of 2 MiB on node 1; |
|                      | 1 GiB in pages of 2 MiB (96 % huge) on node 1; 1  |
|                      | GiB in pages of 4 KiB                             |
| Warm-up              | background, paused: 8 segments pinned, 4 owed;    |
|                      | stopped: cudaHostAlloc failed: out of memory      |
| Budget               | 63.5 GiB, half of the 127 GiB of MemAvailable,    |
|                      | shared by 2 processes (LOCAL_WORLD_SIZE)          |
|==========================================================================|
"""


def test_the_whole_table_is_what_people_read():
    assert _summary.summary(STATS) == TABLE.rstrip("\n")


def test_the_table_in_the_documentation_is_this_one():
    page = Path(__file__).parents[2] / "docs" / "python.md"
    assert TABLE in page.read_text()


def test_every_line_of_a_table_is_as_long(torch, pinned):
    tensor = pinned(8 * MIB)
    for table in (TABLE, pinbuddy.memory_summary()):
        assert len({len(line) for line in table.splitlines()}) == 1, table
    del tensor


def test_the_summary_counts_what_is_live_and_what_is_idle(torch, pinned):
    tensor = pinned(8 * MIB)
    engine = pinbuddy.stats()["engine"]
    summary = pinbuddy.memory_summary()
    assert cells(summary, "Live (active)")[0] == "8.0 MiB"
    assert cells(summary, "Live blocks")[0] == "1"
    assert cells(summary, "Pinned (allocated)")[0] == _summary.size_text(
        engine["pinned_bytes"]["current"]
    )
    assert cells(summary, "Idle")[0] == _summary.size_text(engine["idle_bytes"])
    assert "1 large" in cells(summary, "Segments by kind")[0]
    del tensor
    assert cells(pinbuddy.memory_summary(), "Live (active)")[0] == "0 B"


def cells(summary: str, label: str) -> list[str]:
    (line,) = [it for it in summary.splitlines() if it.startswith(f"| {label} ")]
    return [it.strip() for it in line.strip("|").split("|")][1:]


def test_idle_segments_are_not_fragmented_and_dedicated_regions_do_not_count():
    idle = [segment("idle", GIB, GIB, GIB)] * 3
    dedicated = segment("dedicated", 2 * GIB, 2 * GIB, 0)
    assert _summary.fragmentation([]) == 0
    assert _summary.fragmentation([dedicated]) == 0
    assert _summary.fragmentation([*idle, dedicated]) == 0
    assert _summary.fragmentation([segment("large", GIB, 64 * MIB, 16 * MIB)]) == 0.75


def test_sizes_read_as_people_say_them():
    for size, text in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (135_790_592, "129.5 MiB"),
        (GIB - 1, "1.0 GiB"),
        (1536 * GIB, "1.5 TiB"),
        (1 << 60, "1024.0 PiB"),
    ]:
        assert _summary.size_text(size).rstrip() == text


@pytest.mark.parametrize(
    "warm_up, text",
    [
        ({"mode": "off", "phase": "cold", "pinned": 0, "owed": 8}, "off: nothing is pinned ahead"),
        ({"mode": "sync", "phase": "cold", "pinned": 0, "owed": 1}, "sync, cold: 0 segments pinned, 1"),
        ({"mode": "background", "phase": "done", "pinned": 1, "owed": 0}, "done: 1 segment pinned"),
    ],
)
def test_the_warm_up_is_put_in_words(warm_up, text):
    summary = _summary.summary(STATS | {"warm_up": warm_up | {"stopped": None}})
    assert text in cells(summary, "Warm-up")[0]
    assert "stopped" not in summary


def test_a_budget_without_a_limit_is_no_number():
    stats = STATS | {"budget": {"bytes": (1 << 64) - 1, "why": "since no limit is known"}}
    assert cells(_summary.summary(stats), "Budget") == ["none, since no limit is known"]
    (undecided,) = cells(_summary.summary(STATS | {"budget": None}), "Budget")
    assert undecided == "decided when something is first pinned"


@pytest.mark.parametrize("state", ["off", "retired", "forked", "on"])
def test_off_is_one_line_with_a_reason(state):
    summary = _summary.summary(STATS | {"state": state, "engine": None})
    reason = {"off": "BUDDY_DISABLE=1", "forked": "forked child"}.get(state, "retired")
    assert re.fullmatch(f"pinbuddy is off: .*{reason}.*\\.", summary)


# python -m pinbuddy


def test_the_command_prints_version_settings_and_summary(command):
    done = command(BUDDY_BLOCK_COUNT="2", BUDDY_THRESHOLD_MB="much")
    assert done.returncode == 0 and done.stderr == ""
    title, settings, summary = done.stdout.rstrip("\n").split("\n\n")
    assert title == f"torch {pinbuddy.version()}"
    assert summary.startswith("|==") and "nothing pinned" in summary
    rows = [line.split(maxsplit=2) for line in settings.splitlines()]
    assert rows[0] == ["variable", "value", "origin"]
    assert ["BUDDY_BLOCK_COUNT", "2", "environment"] in rows
    assert ["BUDDY_THRESHOLD_MB", "4", "rejected: the default stands in"] in rows
    assert ["BUDDY_DISABLE", "0", "default"] in rows
    assert len(rows) == 1 + len(pinbuddy.config())


def test_the_command_speaks_to_machines(command):
    done = command("--json", BUDDY_BLOCK_COUNT="2")
    assert done.returncode == 0 and done.stdout.count("\n") == 1
    report = json.loads(done.stdout)
    assert list(report) == ["version", "enabled", "config", "stats"]
    assert report["version"] == pinbuddy.version() and report["enabled"] is True
    assert report["config"]["BUDDY_BLOCK_COUNT"] == {"value": 2, "origin": "environment"}
    assert report["stats"]["warm_up"]["owed"] == 2


@pytest.mark.parametrize("variables", [NO_GPU, {"BUDDY_DISABLE": "1"}])
def test_the_command_works_where_there_is_nothing_to_do(command, variables):
    done = command(**variables)
    assert done.returncode == 0 and done.stderr == ""
    assert ("nothing pinned" if variables is NO_GPU else "pinbuddy is off") in done.stdout


def test_columns_are_as_wide_as_what_is_in_them():
    settings = {
        "BUDDY_MAX_MB": {"value": None, "origin": "default"},
        "BUDDY_DISABLE": {"value": True, "origin": "environment"},
        "BUDDY_X": {"value": "word", "origin": "rejected"},
    }
    assert settings_table(settings) == (
        "variable       value      origin\n"
        "BUDDY_MAX_MB   automatic  default\n"
        "BUDDY_DISABLE  1          environment\n"
        "BUDDY_X        word       rejected: the default stands in"
    )


# Where the package does not belong.


@pytest.fixture
def package_alone(tmp_path):
    """A folder with our package and no torch."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(pinbuddy.__file__).parent, tmp_path / "pinbuddy", ignore=ignore)
    return tmp_path


IMPORT = """
    import json
    try:
        import pinbuddy
    except ImportError as error:
        print(json.dumps(str(error)))
"""


def test_a_torch_that_is_no_fork_is_named_with_what_to_do(run, command, package_alone):
    message = run(IMPORT, "stock", PYTHONPATH=package_alone).value
    what, found, expected, to_do = message.splitlines()
    assert re.fullmatch(r"torch 2\S+ is not a pinbuddy fork", what)
    assert found.startswith("  found     no libtorch_pinbuddy.so in ") and found.endswith("/torch/lib")
    assert expected.startswith("  expected  ")
    assert "cargo xtask build-wheel" in to_do
    stock = os.environ["PINBUDDY_STOCK_PYTHON"]
    done = command(python=stock, PYTHONPATH=str(package_alone))
    assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr


def test_a_library_of_another_version_is_named_with_what_to_do(run, package_alone):
    import torch

    fake = package_alone / "torch"
    (fake / "lib").mkdir(parents=True)
    (fake / "__init__.py").write_text("__version__ = '2.15.0'\n")
    another = Path(torch.__file__).parent / "lib" / "libc10.so"
    (fake / "lib" / "libtorch_pinbuddy.so").symlink_to(another)
    message = run(IMPORT, PYTHONPATH=package_alone).value
    assert "do not belong together" in message
    assert "no function pinbuddy_" in message and "cargo xtask build-wheel" in message
