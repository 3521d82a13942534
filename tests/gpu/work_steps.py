"""Trains step by step; see measure_steps.py. Call `prepare` first."""

import importlib
import time

import torch
from clock import AllocationClock, pins

_clock: AllocationClock
_step = None


def prepare(workload: str, warm_up: bool, sizes: dict) -> float:
    """Seconds until the workload, a module with a function `make`, is ready. A warm-up continues in the background."""
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
    """Lists of seconds per step and of time in allocation per step; and totals of all steps."""
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
