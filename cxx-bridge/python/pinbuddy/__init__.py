"""What a forked PyTorch's pinned-memory allocator does, and how to ask it.

The allocator itself needs no import: it serves ``pin_memory=True`` from the first request on. This
package reads its settings and counters. On a machine with no GPU everything here works too, and
says that nothing is pinned.
"""

from pinbuddy._library import config, enabled, stats, version

__all__ = ["config", "enabled", "stats", "version"]
__version__ = version()
