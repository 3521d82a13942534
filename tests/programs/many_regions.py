"""Threshold 0, exact growth, and tens of thousands of blocks of a kilobyte that live on.

Each may need its own region: the time of a request at the end over the beginning, and the process's memory areas, of which the kernel
allows some 65,000.
"""

import time
from pathlib import Path

from case import EXACT, LOCKED, main, of_bytes, scaled

MAPS = Path("/proc/self/maps")


def areas() -> int:
    return len(MAPS.read_text().splitlines())


def run(count: int) -> dict[str, float]:
    # The first request of all starts much else.
    kept, parts, before = [of_bytes(1000)], [], areas()
    for _ in range(10):
        part = time.perf_counter()
        kept += [of_bytes(1000) for _ in range(count // 10)]
        parts.append(time.perf_counter() - part)
    return {"seconds": sum(parts), "areas": areas() - before, "end_over_beginning": parts[-1] / parts[0]}


if __name__ == "__main__":
    main(run, LOCKED, EXACT, {"BUDDY_THRESHOLD_MB": 0}, count=scaled(20_000, 6_000))
