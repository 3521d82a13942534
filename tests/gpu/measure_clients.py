"""Programs of users' (tests/programs) that once were slower with ours than with stock, both in turns, run by `nursery.py`.

Each starts cold in a fresh process with its own time limit, and is killed if it hangs, so that the others continue. A ratio is ours over
stock's, over the rounds in which both finished.
"""

import json
import os
import select
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import measuring
import stage
from measuring import in_order, ratio, spread
from ways import Way

HERE = Path(__file__).parent
LIMIT = 10.0
IMPORT = 60.0
# For a parent that does not answer although its child's time is over.
MARGIN = 10.0
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
    "loader": Client(
        "loader", {"images": 512, "workers": 4, "epochs": 1, "passes": 0}, {"images": 64, "batch": 8, "workers": 2}
    ),
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


class Nursery:
    """The process from which programs with one allocator and these settings are forked."""

    def __init__(self, way: Way, settings: dict, log: Path):
        self._command = [way.python, str(HERE.parent / "programs" / "nursery.py"), way.name]
        self._environment, self._log = way.environment(**settings), log
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        with self._log.open("ab") as errors:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                env=self._environment, start_new_session=True,
            )

    def ready(self) -> None:
        if self._line(IMPORT) is None:
            raise RuntimeError(f"{' '.join(self._command)} does not start: {stage.last(self._log)}")

    def run(self, program: str, arguments: dict, limit: float) -> dict:
        """Its figures, or how it failed. A parent that hangs is replaced."""
        asked = {"program": program, "with": arguments, "seconds": limit}
        try:
            print(json.dumps(asked), file=self._process.stdin, flush=True)
            line = self._line(limit + MARGIN)
        except BrokenPipeError:
            line = None
        if line is None:
            self.close()
            self.start()
            self.ready()
            return {"error": f"its parent did not answer within {limit + MARGIN:.0f} s"}
        return json.loads(line)

    def _line(self, seconds: float) -> str | None:
        readable, _, _ = select.select([self._process.stdout], [], [], seconds)
        return (self._process.stdout.readline() or None) if readable else None

    def close(self) -> None:
        if self._process:
            stage.stop(self._process)
            self._process.stdin.close()
            self._process.stdout.close()


def measure(it: measuring.Fixture) -> None:
    nurseries: dict[tuple, Nursery] = {}
    for way in it.ways:
        for settings in {client.settings for client in CLIENTS.values()}:
            own = (SMALL if it.simulated else {}) | dict(settings) if way == "ours" else {}
            nurseries[way, settings] = Nursery(it.ways[way], own, it.out.with_suffix(f".{way}.log"))
    most = LIMIT * (6 if it.simulated else 1)
    seen: dict[str, list[dict]] = {name: [] for name in CLIENTS}
    try:
        for nursery in nurseries.values():
            nursery.start()
        for nursery in nurseries.values():
            nursery.ready()
        for number in it.rounds(5):
            for name, client in CLIENTS.items():
                if it.left() < 1:
                    return
                limit = min(most, it.left() / len(it.ways))
                arguments = client.arguments | (client.small if it.simulated else {})
                round_ = {}
                for way in in_order(it.ways, number):
                    round_[way] = nurseries[way, client.settings].run(client.program, arguments, limit)
                    if "error" in round_[way]:
                        print(f"{name} with {way}: {round_[way]['error']}", flush=True)
                seen[name].append(round_)
                it.write({name: of_client(rounds) for name, rounds in seen.items() if rounds})
    finally:
        for nursery in nurseries.values():
            nursery.close()


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


if __name__ == "__main__":
    measuring.main(measure)
