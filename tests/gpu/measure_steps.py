"""Times of a training run's steps.

Each round starts four processes: stock; ours as `warmed`, which calls `pinbuddy.warm_up()` before it makes the model,
without waiting; ours with `defaults`, where the first request starts the warm-up; and ours `planned`, the second run with
`BUDDY_PLAN`, of a program that is not changed. Each in turn makes the model and takes its first ten steps; then all take
turns with steady steps.
"""

import importlib
import statistics
import sys
import time
import traceback
from pathlib import Path

import measuring
from measuring import Worker, in_order, ratio, spread, together

FIRST = 10
WAYS = {"stock": "stock", "warmed": "ours", "defaults": "ours", "planned": "ours"}
# `steady`: how many steps each takes in turn, and in how many turns.
WORKLOADS = {
    "transformer": {
        "module": "transformer",
        # The activations of 3584 tokens, with saved weights, are about 7 GiB: within the default warm-up, and in
        # sizes that are not powers of two.
        "sizes": {"words": 16000, "width": 2048, "heads": 16, "layers": 20, "batch": 4, "length": 896},
        "small": {"words": 64, "width": 256, "heads": 4, "layers": 2, "batch": 4, "length": 1024},
        "steady": (5, 3),
    },
    "optimizer": {
        "module": "offloaded_optimizer",
        # Its Adam runs on the CPU: 200 million parameters, and few steady steps, so that a round ends.
        "sizes": {"width": 2048, "layers": 4}, "small": {"width": 512, "layers": 2}, "steady": (3, 1),
    },
}
SMALL = {"BUDDY_BLOCK_SIZE_MB": 64, "BUDDY_BLOCK_COUNT": 2, "BUDDY_THRESHOLD_MB": 1}


class AllocationClock:
    """Time in allocation: that of calls of `torch.empty(..., pin_memory=True)`, by which `save_on_cpu` and programs that offload
    allocate. The wall time includes waiting for locks, for the driver and for pins. Wraps the function, for stock and ours alike."""

    def __init__(self):
        import torch

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


_clock: AllocationClock | None = None
_step = None


def prepare(workload: str, warm_up: bool, sizes: dict) -> float:
    """Seconds until the workload, a module with a function `make`, is ready. A warm-up continues in the background."""
    global _clock, _step
    import torch

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
    """Seconds and time in allocation of each step, and totals of all: also what torch says of calls of the driver for pinned memory."""
    import torch

    seconds, allocating, results = [], [], []
    pins, calls = torch.cuda.host_memory_stats()["num_host_alloc"], _clock.calls
    for _ in range(count):
        start, inside = time.perf_counter(), _clock.seconds
        results.append(_step())
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        allocating.append(_clock.seconds - inside)
    stats = torch.cuda.host_memory_stats()
    return {
        "plan": plan_counts(), "seconds": seconds, "allocating": allocating, "results": results,
        "requests": _clock.calls - calls, "pins": stats["num_host_alloc"] - pins,
        "driver_seconds": stats["host_alloc_time.total"] / 1e6, "peak_pinned": stats["allocated_bytes.peak"],
    }


def plan_counts() -> dict | None:
    """What a plan has served so far; none without a plan."""
    try:
        import pinbuddy
    except ImportError:
        return None
    plan = pinbuddy.stats()["plan"] if pinbuddy.enabled() else None
    return plan and {what: plan[what] for what in ("hits", "misses", "unplanned")}


def measure(it: measuring.Fixture, which: str) -> None:
    workload = WORKLOADS[which]
    sizes = workload["small" if it.simulated else "sizes"]
    steady, turns = (2, 1) if it.simulated else workload["steady"]
    ways, plan, failed = list(WAYS), it.out.with_suffix(".plan"), None
    try:
        record(it, workload["module"], sizes, plan)
    except RuntimeError:
        # The others need no plan, and are measured all the same.
        failed = traceback.format_exc()
        ways.remove("planned")
    seen: dict[str, list[dict]] = {name: [] for name in ways}
    for number in it.rounds(5):
        workers = {name: worker(it, name, plan) for name in ways}
        with together(workers):
            this = {}
            for name in in_order(ways, number):
                ready = workers[name].ask("prepare", workload=workload["module"], warm_up=name == "warmed", sizes=sizes)
                this[name] = {"prepare": ready, "first": workers[name].ask("steps", count=FIRST), "steady": []}
            for turn in range(turns):
                for name in in_order(ways, number + turn):
                    this[name]["steady"] += workers[name].ask("steps", count=steady)["seconds"]
        for name, own in this.items():
            seen[name].append(own)
        it.write(results(seen) | {"sizes": sizes})
        served = this["planned"]["first"]["plan"] if "planned" in this else None
        if "planned" in this and not (served and served["hits"]):
            failed = f"the plan served nothing: {served}"
    if failed:
        sys.exit(failed)


def worker(it: measuring.Fixture, name: str, plan: Path) -> Worker:
    settings = SMALL if WAYS[name] == "ours" and it.simulated else {}
    if name == "planned":
        settings = settings | {"BUDDY_PLAN": plan}
    return Worker(it.ways[WAYS[name]], "measure_steps", **settings)


def record(it: measuring.Fixture, module: str, sizes: dict, plan: Path) -> None:
    """Makes a plan of the first steps."""
    plan.unlink(missing_ok=True)
    with together({"planned": worker(it, "planned", plan)}) as workers:
        workers["planned"].ask("prepare", workload=module, warm_up=False, sizes=sizes)
        workers["planned"].last("steps", count=FIRST)
    if not plan.exists():
        raise RuntimeError("the recorded run has written no plan")


def results(seen: dict[str, list[dict]]) -> dict:
    figures = {name: {what: [of(own) for own in rounds] for what, of in FIGURES.items()} for name, rounds in seen.items()}
    stock, first = figures["stock"], {name: rounds[0]["first"] for name, rounds in seen.items()}
    return {
        "figures": {name: {what: spread(own) for what, own in by.items()} for name, by in figures.items()},
        "ratio": {
            name: {what: ratio(by[what], stock[what]) for what in COMPARED if all(stock[what])}
            for name, by in figures.items() if name != "stock"
        },
        "first_steps_s": {name: by_step(rounds) for name, rounds in seen.items()},
        "results": {name: own["results"] for name, own in first.items()},
        "plan": {name: own["plan"] for name, own in first.items() if own["plan"]},
    }


FIGURES = {
    "prepare_s": lambda it: it["prepare"],
    "first_steps_s": lambda it: sum(it["first"]["seconds"]),
    "allocating_s": lambda it: sum(it["first"]["allocating"]),
    "driver_s": lambda it: it["first"]["driver_seconds"],
    "steady_step_s": lambda it: statistics.median(it["steady"]),
    "requests": lambda it: it["first"]["requests"],
    "pins": lambda it: it["first"]["pins"],
    "peak_pinned_gib": lambda it: it["first"]["peak_pinned"] / (1 << 30),
    "with_prepare_s": lambda it: it["prepare"] + sum(it["first"]["seconds"]),
}
COMPARED = ("first_steps_s", "allocating_s", "steady_step_s", "with_prepare_s")


def by_step(rounds: list[dict]) -> list[float]:
    """The median of each of the first steps."""
    return [statistics.median(seconds) for seconds in zip(*(own["first"]["seconds"] for own in rounds))]
