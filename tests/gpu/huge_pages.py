"""Huge pages of 2 MiB of the system's pool, set aside for a while."""

import contextlib
from pathlib import Path

POOL = Path("/proc/sys/vm/nr_hugepages")
PAGE_MIB = 2


@contextlib.contextmanager
def set_aside(mib: int):
    """Whether the system sets as much aside, which only root can ask for; the pool is put back as it was."""
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
