"""Exact growth, and a buffer that grows row by row, like a cache of keys and values: the new one is allocated, then the old one is
freed. Each step requests a new size. Counted, at a driver's pace.
"""

import time

from case import COUNTED, EXACT, PACED, Requests, main, pinned_mib, scaled


def run(row_kib: int, start_mib: int = 8, end_mib: int = 64) -> dict[str, float]:
    requests, mib = Requests(), float(start_mib)
    begin = time.perf_counter()
    buffer = requests.make(mib)
    while mib < end_mib:
        mib += row_kib / 1024
        buffer = requests.make(mib)
    del buffer
    seconds = time.perf_counter() - begin
    over = {"pinned_ever_mib": pinned_mib("allocated"), "peak_over_live": pinned_mib("peak") / (2 * mib)}
    return {"seconds": seconds} | over | requests.figures


if __name__ == "__main__":
    main(run, COUNTED, EXACT, PACED, row_kib=scaled(64, 256))
