"""Time in allocation: what calls of `torch.empty(..., pin_memory=True)` take.

`torch.autograd.graph.save_on_cpu` and programs that offload ask for pinned memory that way. The function is
replaced in the process that measures, with stock and ours alike, so that the same wall time is counted:
waiting for a lock, for the driver and for a pin included.
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
    """How often this process's allocator called the driver for pinned memory, and the seconds of that, by
    torch's own count."""
    stats = torch.cuda.host_memory_stats()
    return stats["num_host_alloc"], stats["host_alloc_time.total"] / 1e6
