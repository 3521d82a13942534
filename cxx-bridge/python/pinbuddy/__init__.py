"""What pinbuddy's pinned-memory allocator does in PyTorch: how to ask it, and how to warm it up.

The allocator itself needs no import: it serves ``pin_memory=True`` from the first request on. This
package reads its settings and counters, pins ahead of need and gives back what is idle. Every size
is in bytes. On a machine with no GPU, with ``BUDDY_DISABLE=1``, in a forked child, and where the
plug-in does not fit the PyTorch beside it, everything here works too, and says that nothing is
pinned or that the engine is off.

``python -m pinbuddy`` prints the settings and a summary, ``python -m pinbuddy doctor`` whether the
allocator is in place, and why not.
"""

from pinbuddy._act import empty_cache, warm_up
from pinbuddy._read import config, enabled, memory_summary, segments, stats, version

__all__ = [
    "config",
    "empty_cache",
    "enabled",
    "memory_summary",
    "segments",
    "stats",
    "version",
    "warm_up",
]


def __getattr__(name: str) -> str:
    # Not at import: PyTorch imports the plug-in before the library that knows it is loaded.
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
