"""Targets of figures, and whether they are met. Knows only the paths in results.json."""

from dataclasses import dataclass

# The default number of threads that touch a block's pages.
MOST_THREADS = 8


@dataclass(frozen=True)
class Target:
    """`figure` reads the value, and its quartiles if there are any, from the results; KeyError if it was not
    measured."""

    name: str
    figure: object
    bound: float
    # Whether the bound is a minimum.
    least: bool = False

    def judge(self, results: dict) -> dict:
        line = {"name": self.name, "wanted": f"{'>=' if self.least else '<='} {self.bound:g}"}
        try:
            value, quartiles = self.figure(results)
        except KeyError:
            return line | {"value": None, "quartiles": None, "verdict": "not measured"}
        met = value >= self.bound if self.least else value <= self.bound
        verdict = "met" if met else "missed"
        # The simulator's figures are not judged.
        verdict = "not judged" if results["simulated"] else verdict
        return line | {"value": value, "quartiles": quartiles, "verdict": verdict}


def _step(workload: str, what: str):
    def figure(results: dict):
        it = results["measured"][workload]["ratio"]["warmed"][what]
        return it["ratio"], it["quartiles"]

    return figure


def _bandwidth(direction: str):
    def figure(results: dict):
        it = results["measured"]["bandwidth"]
        it = it["ratio"][direction][it["largest"]]["engine"]
        return it["ratio"], it["quartiles"]

    return figure


def _efficiency(results: dict):
    it = results["measured"]["device"]["figures"]["planned"]["efficiency"]
    return it["median"], it["quartiles"]


def _reserved(results: dict):
    """Over what expandable segments reserve, where that is less than stock's."""
    it = results["measured"]["device"]["ratio"]
    planned, expandable = it["planned"]["reserved_gib"], it["expandable segments"]["reserved_gib"]["ratio"]
    best = min(1, expandable)
    return planned["ratio"] / best, [value / best for value in planned["quartiles"]]


def _device_step(results: dict):
    it = results["measured"]["device"]["ratio"]["planned"]["step_s"]
    return it["ratio"], it["quartiles"]


def default_pages(pins: dict) -> str:
    """The row of transparent huge pages with the default number of threads."""
    threads = [int(name.split(", ")[1]) for name in pins["times_faster"] if name.startswith("THP, ")]
    return f"THP, {max(it for it in threads if it <= MOST_THREADS)}"


def _pin_cost(results: dict):
    pins = results["measured"]["pins"]
    it = pins["s_per_gib"][default_pages(pins)]
    return it["median"], it["quartiles"]


def _pin_speed(results: dict):
    pins = results["measured"]["pins"]
    it = pins["times_faster"][default_pages(pins)]
    return it["ratio"], it["quartiles"]


TARGETS = [
    target
    for workload in ("transformer", "optimizer")
    for target in (
        Target(f"{workload}: time in allocation, first 10 steps, over stock's", _step(workload, "allocating_s"), 0.1),
        Target(f"{workload}: the first 10 steps, over stock's", _step(workload, "first_steps_s"), 0.89),
        Target(f"{workload}: a steady step, over stock's", _step(workload, "steady_step_s"), 1.01),
    )
] + [
    Target("device memory: requested over reserved, with a plan", _efficiency, 0.99, least=True),
    Target("device memory: reserved with a plan, over the better of PyTorch's", _reserved, 1),
    Target("device memory: a step with a plan, over stock's", _device_step, 1.01),
    Target("bandwidth to the GPU, over cudaHostAlloc's", _bandwidth("h2d"), 0.98, least=True),
    Target("bandwidth from the GPU, over cudaHostAlloc's", _bandwidth("d2h"), 0.98, least=True),
    Target("warm-up with THP, seconds a GiB", _pin_cost, 0.1),
    Target("warm-up with THP, times faster than cudaHostAlloc", _pin_speed, 3, least=True),
]


def judge(results: dict) -> list[dict]:
    return [target.judge(results) for target in TARGETS]
