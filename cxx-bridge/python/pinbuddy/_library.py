"""The C interface of ``libtorch_pinbuddy.so``, which ``include/pinbuddy/pinbuddy.h`` describes.

Finds the library, declares its functions and turns what they copy out into Python's data. Knows
nothing of what the data mean.
"""

import ctypes
import functools
import json
from pathlib import Path
from typing import Any

_NAME = "libtorch_pinbuddy.so"
_TO_DO = "install the wheel that `cargo xtask build-wheel` makes: pip install dist/torch-*.whl"

_COPY = (ctypes.c_size_t, (ctypes.c_char_p, ctypes.c_size_t))
# What each function returns, and what it takes.
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "pinbuddy_enabled": (ctypes.c_int, ()),
    "pinbuddy_version": (ctypes.c_char_p, ()),
    "pinbuddy_warm_up": (ctypes.c_int, (ctypes.c_int,)),
    "pinbuddy_empty_cache": (ctypes.c_int, ()),
    "pinbuddy_config_json": _COPY,
    "pinbuddy_stats_json": _COPY,
    "pinbuddy_segments_json": _COPY,
}


@functools.cache
def load() -> ctypes.CDLL:
    """The library that the imported torch runs with.

    Raises ``ImportError`` where torch is no fork, or one of another version than this package.
    """
    # Importing torch loads the library and registers the allocator; opening it here by the same
    # path only finds it again.
    import torch

    path = Path(torch.__file__).parent / "lib" / _NAME
    if not path.exists():
        raise _refusal(
            f"torch {torch.__version__} is not a pinbuddy fork",
            found=f"no {_NAME} in {path.parent}",
            expected=f"the {_NAME} that a fork wheel brings",
        )
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise _refusal(
                f"{_NAME} and the Python package pinbuddy do not belong together",
                found=f"no function {name} in {path}",
                expected=f"the library of the wheel that brought {Path(__file__).parent}",
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


def _refusal(what: str, *, found: str, expected: str) -> ImportError:
    text = f"{what}\n  found     {found}\n  expected  {expected}\n  to do     {_TO_DO}"
    # With a name, `python -m pinbuddy` shows the message and no traceback.
    return ImportError(text, name="pinbuddy")
