"""Host memory to pin: populated 4 KiB pages, private huge pages and shared huge pages.

Shared huge pages work whatever /sys says of shared memory, unless it says `deny`: one byte is touched in each 2
MiB, and the kernel is told to collapse them (Linux 6.1 and later).
"""

import ctypes
import errno
import mmap
import os
import threading
from pathlib import Path

from libcuda import Unavailable

MIB, GIB = 1 << 20, 1 << 30
PAGE, HUGE = 4096, 2 * MIB
FAILED = ctypes.c_void_p(-1).value
# Values of madvise from linux/mman.h; Python's mmap lacks the last two.
USE_HUGE, USE_SMALL, POPULATE, COLLAPSE = 14, 15, 23, 25
# MAP_FIXED and MAP_NORESERVE, which Python lacks, too.
FIXED, UNCOUNTED = 0x10, 0x4000
SHARED_HUGE, PRIVATE_HUGE = "shared huge pages", "private huge pages"
SMALL_PAGES, SHARED_SMALL = "4 KiB pages", "shared 4 KiB pages"
KINDS = (SHARED_HUGE, PRIVATE_HUGE, SMALL_PAGES, SHARED_SMALL)
HUGE_KINDS, SHARED_KINDS = (SHARED_HUGE, PRIVATE_HUGE), (SHARED_HUGE, SHARED_SMALL)
MOST_THREADS, TRIES = 8, 5
# Memory left for other programs.
SHARE = 3

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p


def _map(address: int | None, size: int, flags: int, protection: int) -> int:
    found = libc.mmap(
        ctypes.c_void_p(address), ctypes.c_size_t(size), protection, mmap.MAP_ANONYMOUS | flags, -1, ctypes.c_long(0)
    )
    if found == FAILED:
        raise OSError(ctypes.get_errno(), f"no {size >> 20} MiB can be mapped")
    return found


def call_madvise(address: int, size: int, advice: int) -> None:
    if libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), advice):
        number = ctypes.get_errno()
        raise OSError(number, f"madvise {advice}: {os.strerror(number)}")


class Region:
    """Memory of one kind, aligned to a huge page. Close it, or use it in a `with`."""

    def __init__(self, kind: str, size: int):
        self.kind, self.size = kind, size
        if size > room():
            raise Unavailable(f"{size >> 20} MiB is more than a {SHARE}rd of the memory that is free")
        self._whole = size + HUGE
        self._start = _map(None, self._whole, mmap.MAP_PRIVATE | UNCOUNTED, 0)
        self.address = -(-self._start // HUGE) * HUGE
        # Mapped again at an aligned address: the kernel collapses shared memory only if its own offset is aligned,
        # too.
        sharing = mmap.MAP_SHARED if kind in SHARED_KINDS else mmap.MAP_PRIVATE
        _map(self.address, size, sharing | FIXED, mmap.PROT_READ | mmap.PROT_WRITE)
        try:
            _in_slices(self, _FILL[kind])
        except OSError as error:
            self.close()
            raise Unavailable(f"{kind} cannot be had: {error}") from None

    def close(self) -> None:
        libc.munmap(ctypes.c_void_p(self._start), ctypes.c_size_t(self._whole))

    def __enter__(self) -> "Region":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def about(self) -> str:
        """For the results: how much of what."""
        told = f"{self.size >> 20} MiB of {self.kind}"
        return f"{told}, {self.huge():.0%} huge" if self.kind in HUGE_KINDS else told

    def huge(self) -> float:
        """How much of it is mapped in huge pages, according to the kernel."""
        found = 0
        inside = False
        for line in Path("/proc/self/smaps").read_text().splitlines():
            head = line.split(maxsplit=1)[0]
            if "-" in head and not head.endswith(":"):
                low, high = (int(it, 16) for it in head.split("-"))
                inside = low < self.address + self.size and high > self.address
            elif inside and head in ("AnonHugePages:", "ShmemPmdMapped:"):
                found += int(line.split()[1]) * 1024
        # The kernel may have merged a neighbour of the same kind into the area.
        return min(1.0, found / self.size)


def _collapse(address: int, size: int) -> None:
    for page in range(address, address + size, HUGE):
        ctypes.c_char.from_address(page).value = b"\1"
    for left in reversed(range(TRIES)):
        try:
            return call_madvise(address, size, COLLAPSE)
        except OSError as error:
            # Try again: a page was busy, or no huge page was free, and one may be free now.
            if not left or error.errno not in (errno.EAGAIN, errno.ENOMEM):
                raise


def _populate(address: int, size: int) -> None:
    try:
        call_madvise(address, size, POPULATE)
    except OSError:
        # Before Linux 5.14.
        ctypes.memset(address, 1, size)


def _populate_huge(address: int, size: int) -> None:
    call_madvise(address, size, USE_HUGE)
    _populate(address, size)


def _populate_small(address: int, size: int) -> None:
    call_madvise(address, size, USE_SMALL)
    _populate(address, size)


_FILL = {
    SHARED_HUGE: _collapse,
    PRIVATE_HUGE: _populate_huge,
    SMALL_PAGES: _populate_small,
    SHARED_SMALL: _populate_small,
}


def best_kind() -> str:
    """The first kind available here; an old or emulated kernel cannot collapse."""
    for kind in KINDS:
        try:
            Region(kind, HUGE).close()
            return kind
        except (Unavailable, OSError):
            continue
    raise Unavailable("no memory of any kind can be had")


def _in_slices(region: Region, fill) -> None:
    """Populates every page, with as many threads as useful."""
    pages = -(-region.size // HUGE)
    count = max(1, min(MOST_THREADS, len(os.sched_getaffinity(0)), pages))
    borders = [region.address + min(region.size, pages * at // count * HUGE) for at in range(count + 1)]
    wrong: list[OSError] = []

    def part(low: int, high: int) -> None:
        try:
            fill(low, high - low)
        except OSError as error:
            wrong.append(error)

    threads = [threading.Thread(target=part, args=pair) for pair in zip(borders, borders[1:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


def room() -> int:
    """Bytes that may be pinned without harm to other programs, by the system's and the control group's limits."""
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    free = next(int(words[1]) * 1024 for words in lines if words[0] == "MemAvailable:")
    group = Path("/sys/fs/cgroup")
    try:
        most = (group / "memory.max").read_text().strip()
        if most != "max":
            free = min(free, int(most) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        # No limit, or another version of control groups.
        pass
    return max(0, free) // SHARE
