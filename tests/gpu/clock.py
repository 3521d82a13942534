"""Time in allocation: the time of calls of `torch.empty(..., pin_memory=True)`.

`torch.autograd.graph.save_on_cpu` and programs that offload allocate pinned memory that way. The measuring process
wraps the function, for stock and ours alike. The wall time includes waiting for locks, for the driver and for pins.
"""

import time

import torch


class AllocationClock:
    """Seconds and calls since the last `take`."""

    def __init__(self):
        self.seconds, self.calls = 0.0, 0
        empty = torch.empty

        def timed(*arguments, **options):
            if not options.get("pin_memory"):
                return empty(*arguments, **options)
            start = time.perf_counter()
            try:
                return empty(*arguments, **options)
            finally:
                self.seconds += time.perf_counter() - start
                self.calls += 1

        torch.empty = timed

    def take(self) -> tuple[float, int]:
        taken = self.seconds, self.calls
        self.seconds, self.calls = 0.0, 0
        return taken


def pins() -> tuple[int, float]:
    """How often this process's allocator called the driver for pinned memory, and for how many seconds, according
    to torch."""
    stats = torch.cuda.host_memory_stats()
    return stats["num_host_alloc"], stats["host_alloc_time.total"] / 1e6
