"""Programs of users' (tests/programs) that once were slower with ours than with stock, both in turns, run by `nursery.py`.

Each starts cold in a fresh process with its own time limit, and is killed if it hangs, so that the others continue. A ratio is ours over
stock's, over the rounds in which both finished.
"""

import os
from dataclasses import dataclass, field

import measuring
from measuring import Worker, in_order, ratio, spread, together

LIMIT = 10.0
# Units of figures, by the end of their name; the others are seconds.
UNITS = {"_ns": "ns", "_mib": "MiB", "_over_live": "times", "_over_largest": "times"}


@dataclass(frozen=True)
class Client:
    """A program with its arguments; `small` replaces some in the simulator."""

    program: str
    arguments: dict
    small: dict = field(default_factory=dict)
    settings: tuple[tuple[str, str], ...] = ()


EXACT = (("BUDDY_GROWTH", "exact"),)
# Sizes for the simulator on a machine with little memory.
SMALL = {"BUDDY_BLOCK_SIZE_MB": 64, "BUDDY_BLOCK_COUNT": 2, "BUDDY_MAX_MB": 2048}
CORES = len(os.sched_getaffinity(0))
GROWING, GROWING_SMALL = {"steps": 12, "mib": 1100}, {"steps": 4, "mib": 70}
CLIENTS = {
    "stall": Client("stall", {"blocks": 16, "others": CORES, "pause": 0.05}, {"blocks": 6, "mib": 4}),
    "loader": Client("loader", {"images": 512, "workers": 4, "epochs": 1, "passes": 0}, {"images": 64, "batch": 8, "workers": 2}),
    "capture_loop": Client("captures", {"captures": 6, "pause": 0.15}, {"captures": 2}),
    "captures": Client("captures", {"captures": 24}, {"captures": 4}),
    "growing_large, new first": Client("growing_large", GROWING | {"old_first": False}, GROWING_SMALL),
    "growing_large, old first": Client("growing_large", GROWING | {"old_first": True}, GROWING_SMALL),
    "growing_small": Client("growing_small", {"end_mib": 24, "row_kib": 64}, {"end_mib": 12}, EXACT),
    "exit": Client("exit", {"naps": [0.05]}),
    "rewarm": Client("rewarm", {"mib": 512, "blocks": 8, "pause": 0.5}, {"mib": 32, "blocks": 4}),
    "cold_large": Client("cold_large", {}, {"mib": 33, "blocks": 4}),
    "clears": Client("clears", {"rounds": 20, "pause": 0.02}, {"rounds": 4}),
    "busy_streams": Client("streams", {"busy": [1, 8, 31], "cycles": 200_000_000, "pairs": 100}, {"busy": [1, 8]}),
    "external_streams": Client("streams", {"busy": [1], "external": 300}, {"external": 20, "cycles": 1_000_000}),
}


def measure(it: measuring.Fixture) -> None:
    nurseries: dict[tuple, Worker] = {}
    for way in it.ways:
        for settings in {client.settings for client in CLIENTS.values()}:
            own = (SMALL if it.simulated else {}) | dict(settings) if way == "ours" else {}
            nurseries[way, settings] = Worker(it.ways[way], "nursery", **own)
    most = LIMIT * (6 if it.simulated else 1)
    seen: dict[str, list[dict]] = {name: [] for name in CLIENTS}
    with together(nurseries):
        for number in it.rounds(5):
            for name, client in CLIENTS.items():
                if it.left() < 1:
                    return
                asked = {"program": client.program, "arguments": client.arguments | (client.small if it.simulated else {})}
                asked["seconds"] = min(most, it.left() / len(it.ways))
                round_ = {}
                for way in in_order(it.ways, number):
                    try:
                        round_[way] = nurseries[way, client.settings].ask("run", which=way, **asked)
                    except RuntimeError as gone:  # The others have parents of their own.
                        round_[way] = {"error": str(gone)}
                    if "error" in round_[way]:
                        print(f"{name} with {way}: {round_[way]['error']}", flush=True)
                seen[name].append(round_)
                it.write({name: of_client(rounds) for name, rounds in seen.items() if rounds})


def of_client(rounds: list[dict]) -> dict:
    """Both figures and their ratio by figure, and the failures by allocator."""
    whole = [each for each in rounds if all("figures" in own for own in each.values())]
    figures = {}
    for name in whole[0]["stock"]["figures"] if whole else []:
        both = {way: [each[way]["figures"][name] for each in whole] for way in ("stock", "ours")}
        figures[name] = {way: spread(values) for way, values in both.items()}
        figures[name]["unit"] = next((unit for end, unit in UNITS.items() if name.endswith(end)), "s")
        figures[name]["ratio"] = ratio(both["ours"], both["stock"]) if all(both["stock"]) else None
    wrong = [f"{way}: {own['error'].strip()}" for each in rounds for way, own in each.items() if "error" in own]
    return {"figures": figures, "wrong": wrong}


def broken(told: dict) -> list[str]:
    """Programs that finished with stock but not with ours."""
    wrong = []
    for name, client in told.items():
        if not any(line.startswith("stock:") for line in client["wrong"]):
            wrong += [f"{name} {line.strip().splitlines()[-1]}" for line in client["wrong"]]
    return wrong
