"""The Python package on a machine with a GPU, without one, and when disabled."""

import inspect
import operator
import types
import typing
from pathlib import Path

import pinbuddy
import pytest
from conftest import MIB
from pinbuddy import _types
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
