"""Targets of figures, and whether they are met. Knows only the paths in results.json."""

import functools
import operator
from dataclasses import dataclass

# The default number of threads that touch a block's pages.
MOST_THREADS = 8


@dataclass(frozen=True)
class Target:
    """`figure` reads the value, and its quartiles, from what was measured; KeyError if it was not."""

    name: str
    figure: object
    bound: float
    # Whether the bound is a minimum.
    least: bool = False

    def judge(self, results: dict) -> dict:
        line = {"name": self.name, "wanted": f"{'>=' if self.least else '<='} {self.bound:g}"}
        try:
            it = self.figure(results["measured"])
        except KeyError:
            return line | {"value": None, "quartiles": None, "verdict": "not measured"}
        value = it.get("ratio", it.get("median"))
        met = value >= self.bound if self.least else value <= self.bound
        # The simulator's figures are not judged.
        verdict = "not judged" if results["simulated"] else "met" if met else "missed"
        return line | {"value": value, "quartiles": it["quartiles"], "verdict": verdict}


def _at(*path: str):
    return lambda measured: functools.reduce(operator.getitem, path, measured)


def _bandwidth(direction: str):
    return lambda measured: measured["bandwidth"]["ratio"][direction][measured["bandwidth"]["largest"]]["engine"]


def _pins(kind: str):
    return lambda measured: measured["pins"][kind][default_pages(measured["pins"])]


def _reserved(measured: dict) -> dict:
    """Over what expandable segments reserve, where that is less than stock's."""
    planned, expandable = (measured["device"]["ratio"][it]["reserved_gib"] for it in ("planned", "expandable segments"))
    best = min(1, expandable["ratio"])
    return {"ratio": planned["ratio"] / best, "quartiles": [value / best for value in planned["quartiles"]]}


def default_pages(pins: dict) -> str:
    """The row of transparent huge pages with the default number of threads."""
    threads = [int(name.split(", ")[1]) for name in pins["times_faster"] if name.startswith("THP, ")]
    return f"THP, {max(it for it in threads if it <= MOST_THREADS)}"


TARGETS = [
    *(
        Target(f"{workload}: {words}, over stock's", _at(workload, "ratio", "warmed", what), bound)
        for workload in ("transformer", "optimizer")
        for what, words, bound in (
            ("allocating_s", "time in allocation, first 10 steps", 0.1),
            ("first_steps_s", "the first 10 steps", 0.89),
            ("steady_step_s", "a steady step", 1.01),
        )
    ),
    Target("device memory: requested over reserved, with a plan", _at("device", "figures", "planned", "efficiency"), 0.99, least=True),
    Target("device memory: reserved with a plan, over the better of PyTorch's", _reserved, 1),
    Target("device memory: a step with a plan, over stock's", _at("device", "ratio", "planned", "step_s"), 1.01),
    Target("bandwidth to the GPU, over cudaHostAlloc's", _bandwidth("h2d"), 0.98, least=True),
    Target("bandwidth from the GPU, over cudaHostAlloc's", _bandwidth("d2h"), 0.98, least=True),
    Target("warm-up with THP, seconds a GiB", _pins("s_per_gib"), 0.1),
    Target("warm-up with THP, times faster than cudaHostAlloc", _pins("times_faster"), 3, least=True),
]


def judge(results: dict) -> list[dict]:
    return [target.judge(results) for target in TARGETS]
