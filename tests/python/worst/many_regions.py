"""Threshold 0, exact growth, and tens of thousands of blocks of a kilobyte that live on.

Each may need its own region: the time of a request at the end over the beginning, and the process's memory areas,
of which the kernel allows some 65,000.
"""

import time
from pathlib import Path

from case import EXACT, LOCKED, finish, of_bytes, scaled, start

start(LOCKED, EXACT, BUDDY_THRESHOLD_MB=0)
MAPS = Path("/proc/self/maps")


def areas() -> int:
    return len(MAPS.read_text().splitlines())


# The first request of all starts much else.
kept, parts, before = [of_bytes(1000)], [], areas()
count = scaled(20_000, 6_000)
begin = time.perf_counter()
for _ in range(10):
    part = time.perf_counter()
    kept += [of_bytes(1000) for _ in range(count // 10)]
    parts.append(time.perf_counter() - part)
finish(
    seconds=time.perf_counter() - begin,
    areas=areas() - before,
    end_over_beginning=parts[-1] / parts[0],
)
