"""The C interface of ``libtorch_pinbuddy.so``, which ``include/pinbuddy/pinbuddy.h`` describes.

Finds the library, declares its functions and parses their JSON. Does not know what the data mean.
"""

import ctypes
import functools
import json
import os
from pathlib import Path
from typing import Any

from pinbuddy import _match

_TO_DO = (
    "install the wheel again that this package came in, from your index or a release: pip install --force-reinstall --no-deps "
    "pinbuddy-*.whl, the plug-in, or torch-*pinbuddy*.whl, the fork"
)

_COPY = (ctypes.c_size_t, (ctypes.c_char_p, ctypes.c_size_t))
# Each function's return type and argument types.
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "pinbuddy_enabled": (ctypes.c_int, ()),
    "pinbuddy_version": (ctypes.c_char_p, ()),
    "pinbuddy_warm_up": (ctypes.c_int, (ctypes.c_int,)),
    "pinbuddy_cuda_is_up": (None, ()),
    "pinbuddy_empty_cache": (ctypes.c_int, ()),
    "pinbuddy_trace_start": (
        ctypes.c_size_t,
        (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t),
    ),
    "pinbuddy_trace_stop": (ctypes.c_int, ()),
    "pinbuddy_device_enable": (
        ctypes.c_size_t,
        (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t),
    ),
    "pinbuddy_pin": (
        ctypes.c_size_t,
        (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t),
    ),
    "pinbuddy_iteration": (None, ()),
    "pinbuddy_config_json": _COPY,
    "pinbuddy_stats_json": _COPY,
    "pinbuddy_segments_json": _COPY,
}


class Absent:
    """Stands in for the library if the plug-in has not loaded it, and answers like an engine that is
    off."""

    def __init__(self, version: str):
        self._version = version.encode()

    def pinbuddy_enabled(self) -> int:
        return 0

    def pinbuddy_version(self) -> bytes:
        return self._version

    def pinbuddy_warm_up(self, _wait: int) -> int:
        return 0

    def pinbuddy_cuda_is_up(self) -> None:
        pass

    def pinbuddy_empty_cache(self) -> int:
        return 0

    def pinbuddy_trace_start(self, _name: bytes, buffer: Any, _capacity: int) -> int:
        buffer.value = b"the engine is off, so requests are not seen"
        return len(buffer.value)

    def pinbuddy_trace_stop(self) -> int:
        return 0

    def pinbuddy_device_enable(
        self, _plan: bytes | None, _trace: bytes | None, buffer: Any, _capacity: int
    ) -> int:
        buffer.value = b"the engine is off, so requests are not seen"
        return len(buffer.value)

    def pinbuddy_pin(self, _storage: int, _asked: int, _pin: Any, buffer: Any, _capacity: int) -> int:
        buffer.value = b"the engine is off"
        return len(buffer.value)

    def pinbuddy_iteration(self) -> None:
        pass

    def pinbuddy_config_json(self, buffer: Any, capacity: int) -> int:
        return _copy({}, buffer, capacity)

    def pinbuddy_stats_json(self, buffer: Any, capacity: int) -> int:
        return _copy({"state": "absent", "segments": []}, buffer, capacity)

    def pinbuddy_segments_json(self, buffer: Any, capacity: int) -> int:
        return _copy([], buffer, capacity)


@functools.cache
def load() -> ctypes.CDLL | Absent:
    """The library that the imported torch uses.

    Raises ``ImportError`` if torch is no fork and there is no plug-in, or if the library's version is
    not this package's.
    """
    # Importing torch loads the library, which registers the allocator. Opening it again by the same
    # path returns the loaded one.
    import torch

    match = _match.of_import(torch)
    plugin = _match.manifest()
    if match.library is None:
        if plugin is None:
            folder = Path(torch.__file__).parent / "lib"
            raise _refusal(
                match.why,
                found=f"no {_match.NAME} in {folder}",
                expected=f"the {_match.NAME} that a fork wheel brings",
                see="pinbuddy explain 'is not a pinbuddy fork'",
            )
        return Absent(plugin["version"])
    if match.form == "fork":
        library = ctypes.CDLL(str(match.library))
    else:
        try:
            library = ctypes.CDLL(str(match.library), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        except OSError:
            # Not loaded now: a pinned tensor may already be live, and the user may have turned it off.
            return Absent(plugin["version"])
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise _refusal(
                f"{_match.NAME} and the Python package pinbuddy do not belong together",
                found=f"no function {name} in {match.library}",
                expected=f"the library of the wheel that brought {Path(__file__).parent}",
                see="pinbuddy explain 'do not belong together'",
            ) from None
        function.restype, function.argtypes = result, arguments
    return library


def read_json(name: str) -> Any:
    """What the function ``name`` copies into a buffer of the caller's, parsed."""
    function = getattr(load(), name)
    capacity = 1 << 14
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        length = function(buffer, capacity)
        if length < capacity:
            return json.loads(buffer.value)
        # It may have grown by the time of the next call.
        capacity = length + (1 << 10)


def _copy(data: Any, buffer: Any, capacity: int) -> int:
    """As the library does."""
    text = json.dumps(data).encode()
    buffer.value = text[: capacity - 1]
    return len(text)


def _refusal(what: str, *, found: str, expected: str, see: str) -> ImportError:
    text = f"{what}\n  found     {found}\n  expected  {expected}\n  to do     {_TO_DO}\n  see       {see}"
    # With a name, `python -m pinbuddy` shows the message and no traceback.
    return ImportError(text, name="pinbuddy")
