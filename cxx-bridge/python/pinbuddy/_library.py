"""The C interface of ``libtorch_pinbuddy.so``, which ``include/pinbuddy/pinbuddy.h`` describes."""

import ctypes
import functools
import json
from pathlib import Path
from typing import Any, Callable


@functools.cache
def _library() -> ctypes.CDLL:
    # Importing torch loads the library and registers the allocator; opening it here by the same
    # path only finds it again.
    import torch

    path = Path(torch.__file__).parent / "lib" / "libtorch_pinbuddy.so"
    if not path.exists():
        raise ImportError(
            f"{path} is missing: torch {torch.__version__} is not a pinbuddy fork. "
            "Install the wheel that `cargo xtask build-wheel` makes."
        )
    library = ctypes.CDLL(str(path))
    library.pinbuddy_version.restype = ctypes.c_char_p
    for name in ("pinbuddy_stats_json", "pinbuddy_config_json"):
        function = getattr(library, name)
        function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        function.restype = ctypes.c_size_t
    return library


def _read(function: Callable[[Any, int], int]) -> Any:
    """Calls a function that copies JSON into a buffer, with a buffer that is large enough."""
    capacity = 1 << 14
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        length = function(buffer, capacity)
        if length < capacity:
            return json.loads(buffer.value)
        capacity = length + (1 << 10)


def enabled() -> bool:
    """Whether pinbuddy serves pinned memory; ``BUDDY_DISABLE=1`` leaves it to PyTorch."""
    return bool(_library().pinbuddy_enabled())


def version() -> str:
    """The fork's version, for instance ``2.15.0+cu132.pinbuddy.0.1.0``."""
    return _library().pinbuddy_version().decode()


def config() -> dict[str, dict[str, Any]]:
    """Each setting by its variable's name: its ``value``, and its ``origin``, one of ``default``,
    ``environment`` and ``rejected`` (set to something unusable, so that the default stands in)."""
    settings = _read(_library().pinbuddy_config_json)
    return {it["name"]: {"value": it["value"], "origin": it["origin"]} for it in settings.values()}


def stats() -> dict[str, Any]:
    """The engine's counters and segments; every size is in bytes.

    ``engine`` holds gauges (``current``, ``peak``, ``allocated``, ``freed``) of what is pinned,
    live and pending, and counts of ``hits`` (requests served) and ``misses`` (requests that had to
    wait for memory to be pinned). ``segments`` lists each segment. ``warm_up`` is ``cold``,
    ``running`` or ``done``. ``retired`` says that the engine met a defect of its own and left
    everything to PyTorch.
    """
    return _read(_library().pinbuddy_stats_json)
