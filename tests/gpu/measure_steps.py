"""Times of a training run's steps: `measure_steps.py FIXTURE OUT transformer|optimizer`.

Each round starts three processes: stock; ours as `warmed`, which calls `pinbuddy.warm_up()` before it makes the
model, without waiting; and ours with `defaults`, where the first request starts the warm-up. Each in turn makes the
model and takes its first ten steps; then all take turns with steady steps.
"""

import statistics
import sys

import fixture
from crew import Crew, Worker, in_order
from ratios import ratio, spread

FIRST = 10
WAYS = {"stock": "stock", "warmed": "ours", "defaults": "ours"}
WORKLOADS = {
    "transformer": {
        "module": "transformer",
        # The activations of 3584 tokens, with saved weights, are about 7 GiB: within the default warm-up, and in
        # sizes that are not powers of two.
        "sizes": {"words": 16000, "width": 2048, "heads": 16, "layers": 20, "batch": 4, "length": 896},
        "small": {"words": 64, "width": 256, "heads": 4, "layers": 2, "batch": 4, "length": 1024},
    },
    "optimizer": {
        "module": "offloaded_optimizer",
        "sizes": {"width": 2048, "layers": 8},
        "small": {"width": 512, "layers": 2},
    },
}
SMALL = {"BUDDY_BLOCK_SIZE_MB": 64, "BUDDY_BLOCK_COUNT": 2, "BUDDY_THRESHOLD_MB": 1}


def measure(it: fixture.Fixture) -> None:
    workload = WORKLOADS[sys.argv[3]]
    sizes = workload["small" if it.simulated else "sizes"]
    steady, turns = (2, 1) if it.simulated else (5, 3)
    seen: dict[str, list[dict]] = {name: [] for name in WAYS}
    for number in it.rounds(5):
        workers = {name: worker(it, name) for name in WAYS}
        with Crew(workers):
            this = {}
            for name in in_order(WAYS, number):
                ready = workers[name].ask(
                    "prepare", workload=workload["module"], warm_up=name == "warmed", sizes=sizes
                )
                this[name] = {"prepare": ready, "first": workers[name].ask("steps", count=FIRST), "steady": []}
            for turn in range(turns):
                for name in in_order(WAYS, number + turn):
                    this[name]["steady"] += workers[name].ask("steps", count=steady)["seconds"]
        for name, own in this.items():
            seen[name].append(own)
        it.write(results(seen) | {"sizes": sizes})


def worker(it: fixture.Fixture, name: str) -> Worker:
    ours = WAYS[name] == "ours"
    return Worker(it.ways[WAYS[name]], "work_steps", **(SMALL if ours and it.simulated else {}))


def results(seen: dict[str, list[dict]]) -> dict:
    figures = {
        name: {what: [of(own) for own in rounds] for what, of in FIGURES.items()} for name, rounds in seen.items()
    }
    return {
        "figures": {name: {what: spread(own) for what, own in by.items()} for name, by in figures.items()},
        "ratio": {
            name: {what: ratio(by[what], figures["stock"][what]) for what in COMPARED if all(figures["stock"][what])}
            for name, by in figures.items()
            if name != "stock"
        },
        "first_steps_s": {name: by_step(rounds) for name, rounds in seen.items()},
        "results": {name: rounds[0]["first"]["results"] for name, rounds in seen.items()},
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
    each = zip(*(own["first"]["seconds"] for own in rounds))
    return [statistics.median(seconds) for seconds in each]


if __name__ == "__main__":
    fixture.main(measure)
