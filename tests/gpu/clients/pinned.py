"""What client programs share: timed requests, and the amount of pinned memory."""

import time

import torch

MIB = 1 << 20


class Requests:
    """Pinned memory, and how long each request for it took."""

    def __init__(self):
        self.seconds: list[float] = []

    def pinned(self, mib: float) -> torch.Tensor:
        start = time.perf_counter()
        tensor = torch.empty(int(mib * MIB), dtype=torch.uint8, pin_memory=True)
        self.seconds.append(time.perf_counter() - start)
        return tensor

    def figures(self) -> dict[str, float]:
        """In seconds."""
        return {"all requests": sum(self.seconds), "slowest request": max(self.seconds)}


def on_device(mib: float) -> torch.Tensor:
    return torch.zeros(int(mib * MIB), dtype=torch.uint8, device="cuda")


def bytes_pinned(which: str = "current") -> int:
    """Pinned now, or at most so far (`peak`), according to torch."""
    return torch.cuda.host_memory_stats()[f"allocated_bytes.{which}"]


def give_back() -> float:
    """Empties the cache, as a graph capture does; the seconds that it took."""
    start = time.perf_counter()
    torch._C._host_emptyCache()
    return time.perf_counter() - start


def pair_cost(mib: float, count: int) -> float:
    """Seconds of an allocate and free of a cached block, the median of some repetitions."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            torch.empty(int(mib * MIB), dtype=torch.uint8, pin_memory=True)
        times.append((time.perf_counter() - start) / count)
    return sorted(times)[len(times) // 2]
