"""Four processes that mp.spawn starts, of which no launcher tells that they share the machine: the sum of
their budgets over half of what was free. The fork's alone. Counted.
"""

from pathlib import Path

from case import of_bytes, settings

RANKS = 4


def rank(_: int, budgets) -> None:
    import pinbuddy

    of_bytes(8 << 20)
    budgets.put(pinbuddy.stats()["budget"]["bytes"])


def available() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(it.split()[1]) << 10 for it in lines if it.startswith("MemAvailable"))


if __name__ == "__main__":
    settings(PINBUDDY_SIM_LOCK=0, BUDDY_BACKING="cuda", PINBUDDY_SIM_QUIET=1)
    import torch.multiprocessing

    half = available() / 2
    budgets = torch.multiprocessing.get_context("spawn").SimpleQueue()
    torch.multiprocessing.spawn(rank, args=(budgets,), nprocs=RANKS)
    print('{"budgets_over_half": %f}' % (sum(budgets.get() for _ in range(RANKS)) / half), flush=True)
