"""What a forked PyTorch's pinned-memory allocator does: how to ask it, and how to warm it up.

The allocator itself needs no import: it serves ``pin_memory=True`` from the first request on. This
package reads its settings and counters, pins ahead of need and gives back what is idle. Every size
is in bytes. On a machine with no GPU, with ``BUDDY_DISABLE=1`` and in a forked child everything
here works too, and says that nothing is pinned or that the engine is off.

``python -m pinbuddy`` prints the settings and a summary.
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
__version__: str = version()
