"""A pool longer than the budget, after a small request: peak pinned memory. Counted.

Upstream serves the pool, while memory pinned ahead stays unused.
"""

import time

from case import COUNTED, Requests, main, pinned_mib


def run() -> dict[str, float]:
    requests = Requests()
    small = requests.make(8)
    time.sleep(1)
    pool = requests.make(2816)
    figures = {"pinned_mib": pinned_mib()}
    del small, pool
    return figures


if __name__ == "__main__":
    # For the numbers of a large machine: half of 4 GiB, and a pool of 2.75.
    main(run, {"BUDDY_MAX_MB": 2048, "BUDDY_BLOCK_SIZE_MB": 256}, COUNTED)
