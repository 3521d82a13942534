"""The C interface of ``libtorch_pinbuddy.so``, which ``include/pinbuddy/pinbuddy.h`` describes.

Finds the library, declares its functions and parses their JSON. Does not know what the data mean.
"""

import ctypes
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pinbuddy import _match

_TO_DO = (
    "install the wheel again that this package came in, from your index or a release: pip install --force-reinstall --no-deps "
    "pinbuddy-*.whl, the plug-in, or torch-*pinbuddy*.whl, the fork"
)

# The longest text that says why something was not done.
_LONGEST = 1 << 12


def _copies(*arguments: Any) -> tuple[Any, tuple[Any, ...]]:
    """Of a function that copies text into a buffer of the caller's, whose length is its last argument."""
    return ctypes.c_size_t, (*arguments, ctypes.c_char_p, ctypes.c_size_t)


# Each function's return type and argument types.
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "pinbuddy_enabled": (ctypes.c_int, ()),
    "pinbuddy_version": (ctypes.c_char_p, ()),
    "pinbuddy_warm_up": (ctypes.c_int, (ctypes.c_int,)),
    "pinbuddy_cuda_is_up": (None, ()),
    "pinbuddy_empty_cache": (ctypes.c_int, ()),
    "pinbuddy_trace_start": _copies(ctypes.c_char_p),
    "pinbuddy_trace_stop": (ctypes.c_int, ()),
    "pinbuddy_device_enable": _copies(ctypes.c_char_p, ctypes.c_char_p),
    "pinbuddy_pin": _copies(ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p),
    "pinbuddy_iteration": (None, ()),
    "pinbuddy_config_json": _copies(),
    "pinbuddy_stats_json": _copies(),
    "pinbuddy_segments_json": _copies(),
}

_OFF = b"the engine is off"
# What they copy where no library is.
_ABSENT = {
    "pinbuddy_trace_start": _OFF + b", so requests are not seen",
    "pinbuddy_device_enable": _OFF + b", so requests are not seen",
    "pinbuddy_pin": _OFF,
    "pinbuddy_config_json": b"{}",
    "pinbuddy_stats_json": b'{"state": "absent", "segments": []}',
    "pinbuddy_segments_json": b"[]",
}


class Absent:
    """Stands in for the library if the plug-in has not loaded it, and answers like an engine that is
    off."""

    def __init__(self, version: str):
        self._version = version.encode()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _FUNCTIONS:
            raise AttributeError(name)
        if name == "pinbuddy_version":
            return lambda: self._version
        if name not in _ABSENT:
            return lambda *_: 0

        def copy(*arguments: Any) -> int:
            """As the library does."""
            buffer, capacity = arguments[-2:]
            buffer.value = _ABSENT[name][: capacity - 1]
            return len(_ABSENT[name])

        return copy


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


def file_name(path: str | os.PathLike[str]) -> bytes:
    """The name as the library takes it, to the first zero: raises ``ValueError`` for one that has a zero, as ``open`` does."""
    name = os.fsencode(path)
    # Raises it, in Python's own words.
    os.access(name, os.F_OK)
    return name


def refusal(name: str, *arguments: Any) -> str:
    """Why the function ``name`` has not done what it was asked; empty if it has."""
    buffer = ctypes.create_string_buffer(_LONGEST)
    getattr(load(), name)(*arguments, buffer, _LONGEST)
    return buffer.value.decode(errors="replace")


def _refusal(what: str, *, found: str, expected: str, see: str) -> ImportError:
    text = f"{what}\n  found     {found}\n  expected  {expected}\n  to do     {_TO_DO}\n  see       {see}"
    # With a name, `python -m pinbuddy` shows the message and no traceback.
    return ImportError(text, name="pinbuddy")
