"""The first pinned memory of a process; see measure_first.py."""

import time

import torch


def first(mib: int) -> float:
    """Seconds until it is there."""
    start = time.perf_counter()
    torch.empty(mib << 20, dtype=torch.uint8, pin_memory=True)
    return time.perf_counter() - start
