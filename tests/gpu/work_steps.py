"""Trains step by step, as it is told; see measure_steps.py. `prepare` first."""

import importlib
import time

import torch
from clock import AllocationClock, pins

_clock: AllocationClock
_step = None


def prepare(workload: str, warm_up: bool, sizes: dict) -> float:
    """Seconds until the workload, a module with a function `make`, is ready. A warm-up goes on behind it."""
    global _clock, _step
    start = time.perf_counter()
    if warm_up:
        import pinbuddy

        pinbuddy.warm_up()
    torch.manual_seed(7)
    _step = importlib.import_module(workload).make(**sizes)
    torch.cuda.synchronize()
    _clock = AllocationClock()
    return time.perf_counter() - start


def steps(count: int) -> dict:
    """Lists with an entry a step: seconds, of it in allocation; and what all of them together did."""
    seconds, allocating, results = [], [], []
    before, _ = pins()
    calls = 0
    for _ in range(count):
        start = time.perf_counter()
        results.append(_step())
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        inside, asked = _clock.take()
        allocating.append(inside)
        calls += asked
    now, driver_seconds = pins()
    return {
        "seconds": seconds,
        "allocating": allocating,
        "requests": calls,
        "pins": now - before,
        "driver_seconds": driver_seconds,
        "peak_pinned": torch.cuda.host_memory_stats()["allocated_bytes.peak"],
        "results": results,
    }
