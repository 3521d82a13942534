"""The Python package on a machine with a GPU, without one, and when disabled."""

import inspect
import operator
import types
import typing
from pathlib import Path

import pinbuddy
import pytest
from conftest import MIB, engine_segment
from pinbuddy import _types
from plugin import IS_PLUGIN
from program import hold

NO_GPU = {"PINBUDDY_SIM_DEVICES": "0"}
# Two segments, pinned by the first request or warm_up().
SMALL = {"BUDDY_BLOCK_SIZE_MB": "16", "BUDDY_BLOCK_COUNT": "2", "BUDDY_WARMUP": "sync"}


@pytest.mark.release
def test_the_version_is_the_wheels(torch):
    assert pinbuddy.version() == pinbuddy.__version__
    assert ".pinbuddy." in pinbuddy.version()
    # In a fork, torch's own version.
    assert pinbuddy.version().startswith(torch.__version__)
    assert IS_PLUGIN or pinbuddy.version() == torch.__version__


def test_segments_show_where_a_tensors_block_lies(torch, pinned):
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


@pytest.mark.release
def test_the_data_have_the_shapes_that_the_types_promise(torch, pinned):
    live = pinned(8 * MIB)
    for function in (pinbuddy.stats, pinbuddy.segments, pinbuddy.config):
        fits(function(), typing.get_type_hints(function)["return"], function.__name__)
    del live


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


@pytest.mark.release
def test_the_package_is_marked_as_typed_and_documents_its_types():
    assert (Path(pinbuddy.__file__).parent / "py.typed").exists()
    shapes = [it for it in vars(_types).values() if typing.is_typeddict(it)]
    assert len(shapes) > 5 and all(it.__doc__ for it in shapes)


def test_warm_up_pins_the_blocks_and_tells_pytorch(run):
    program = """
        before = len(pinbuddy.segments())
        done = pinbuddy.warm_up(wait=True)
        answer(before, done, len(pinbuddy.segments()), torch.cuda.is_initialized(), pinbuddy.stats()["warm_up"])
    """
    before, done, after, initialized, warm_up = run(program, **SMALL | {"BUDDY_WARMUP": "off"}).value
    assert [before, done, after] == [0, True, 2]
    assert initialized, "or a child forked from now on would use a broken CUDA"
    assert warm_up == {"mode": "off", "phase": "done", "pinned": 2, "owed": 0, "stopped": None}


def test_warm_up_does_not_wait_unless_it_is_asked_to(run):
    program = """
        import json, pinbuddy, time
        start = time.monotonic()
        done = pinbuddy.warm_up()
        phase = pinbuddy.stats()["warm_up"]["phase"]
        pinbuddy.warm_up(wait=True)
        print(json.dumps([done, phase, pinbuddy.stats()["warm_up"]["phase"]]))
    """
    # At this pace a segment takes half a second.
    assert run(program, **SMALL, PINBUDDY_SIM_PIN_MS_PER_GB=32_000).value == [True, "running", "done"]


def test_empty_cache_is_pytorchs_own_where_the_engine_is_off(run):
    program = """
        use_gpu()  # before which PyTorch's own function does nothing
        pinned(8)
        before = host_stats()["allocated_bytes.current"]
        pinbuddy.empty_cache()
        answer(before, host_stats()["allocated_bytes.current"])
    """
    assert run(program, BUDDY_DISABLE=1).value == [8 * MIB, 0]


EVERYTHING = """
    import json, pinbuddy, torch
    print(json.dumps({
        "enabled": pinbuddy.enabled(), "available": torch.cuda.is_available(), "warm_up": pinbuddy.warm_up(wait=True),
        "empty_cache": pinbuddy.empty_cache(), "initialized": torch.cuda.is_initialized(),
        "stats": pinbuddy.stats(), "segments": pinbuddy.segments(), "summary": pinbuddy.memory_summary(),
    }))
"""


@pytest.mark.release
def test_with_no_gpu_nothing_is_pinned_and_nothing_fails(run):
    outcome = run(EVERYTHING, **NO_GPU)
    said = outcome.value
    assert not said["enabled"] and not said["available"] and said["warm_up"] is False and not said["initialized"]
    assert said["segments"] == said["stats"]["segments"] == []
    assert said["stats"]["budget"] is None
    assert "nothing pinned" in said["summary"] and "cold" in said["summary"]
    assert outcome.stderr == ""


@pytest.mark.release
@pytest.mark.parametrize("gpu", [{}, NO_GPU])
def test_disabled_it_says_so_in_one_line(run, gpu):
    outcome = run(EVERYTHING, **SMALL, **gpu, BUDDY_DISABLE=1)
    said = outcome.value
    assert not said["enabled"] and said["warm_up"] is False and not said["initialized"]
    assert said["stats"]["state"] == "off" and said["segments"] == []
    assert "off" in said["summary"] and "BUDDY_DISABLE=1" in said["summary"]
    assert "\n" not in said["summary"]
    assert outcome.stderr == ""
