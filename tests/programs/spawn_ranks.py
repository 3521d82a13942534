"""Four processes of mp.spawn, which sets no launcher's variables: the sum of their budgets over half of the free
memory. Only the fork. Counted.
"""

import time
from pathlib import Path

from case import of_bytes, settings

RANKS = 4


def rank(_: int, all_here, budgets) -> None:
    import pinbuddy

    block = of_bytes(8 << 20)
    # On a busy machine the first would have ended before the last has imported torch.
    all_here.wait()
    time.sleep(1.1)  # A budget is good for a second.
    budgets.put(pinbuddy.stats()["budget"]["bytes"])
    all_here.wait()
    del block


def available() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(it.split()[1]) << 10 for it in lines if it.startswith("MemAvailable"))


if __name__ == "__main__":
    settings({"PINBUDDY_SIM_LOCK": 0, "BUDDY_BACKING": "cuda"})
    import torch.multiprocessing

    half = available() / 2
    spawn = torch.multiprocessing.get_context("spawn")
    all_here, budgets = spawn.Barrier(RANKS), spawn.SimpleQueue()
    torch.multiprocessing.spawn(rank, args=(all_here, budgets), nprocs=RANKS)
    print('{"budgets_over_half": %f}' % (sum(budgets.get() for _ in range(RANKS)) / half), flush=True)
