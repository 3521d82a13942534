"""Huge pages of 2 MiB in the system's pool, reserved for a while."""

import contextlib
from pathlib import Path

POOL = Path("/proc/sys/vm/nr_hugepages")
PAGE_MIB = 2


@contextlib.contextmanager
def set_aside(mib: int):
    """Reserves pages, which only root may do, and yields whether there are enough. Restores the pool afterwards."""
    try:
        before = POOL.read_text()
        POOL.write_text(str(int(before) + mib // PAGE_MIB))
    except OSError:
        yield False
        return
    try:
        yield int(POOL.read_text()) >= int(before) + mib // PAGE_MIB
    finally:
        POOL.write_text(before)
