"""Statistics, settings and warm-up of pinbuddy's pinned-memory allocator in PyTorch.

The allocator itself needs no import: it serves ``pin_memory=True`` from the first request on. This
package reads its settings and counters, pins memory ahead of need and unpins idle memory. Every size
is in bytes. Everything here also works on a machine with no GPU, with ``BUDDY_DISABLE=1``, in a
child of a fork, and if the plug-in does not fit the PyTorch beside it: then it says that nothing is
pinned or that the engine is off.

``python -m pinbuddy`` prints the settings and a summary; ``python -m pinbuddy doctor`` says whether
the allocator is in place, and if not, why.
"""

from pinbuddy import device, trace
from pinbuddy._act import empty_cache, iteration, warm_up
from pinbuddy._in_place import pin_, pinned, unpin_
from pinbuddy._read import config, enabled, memory_summary, segments, stats, version

__all__ = [
    "config",
    "device",
    "empty_cache",
    "enabled",
    "iteration",
    "memory_summary",
    "pin_",
    "pinned",
    "segments",
    "stats",
    "trace",
    "unpin_",
    "version",
    "warm_up",
]


def __getattr__(name: str) -> str:
    # Not at import: PyTorch imports the plug-in before the library is loaded, which knows the version.
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
