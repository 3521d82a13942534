"""A buffer longer than a block that grows by a MiB per step: the new one is allocated before the old one is freed (`new`), or after
(`old`). Stock rounds to the next power of two and pins once or twice; a region per step would pin at each step. Counted, at a
driver's pace.
"""

import time

from case import COUNTED, MIB, PACED, Requests, main, pinned_mib, scaled, word


def run(steps: int, mib: int = 1100, old_first: bool = False) -> dict[str, float]:
    requests = Requests()
    begin = time.perf_counter()
    buffer = requests.make(mib)
    for _ in range(steps):
        mib += 1
        if old_first:
            buffer = None
        buffer = requests.make(mib)
    live = buffer.numel() / MIB + (0 if old_first else mib - 1)
    return {"seconds": time.perf_counter() - begin, "peak_over_live": pinned_mib("peak") / live} | requests.figures


if __name__ == "__main__":
    main(run, COUNTED, PACED, steps=scaled(40, 12), old_first=word(0, "new") == "old")
