"""User programs that once were slower with ours than with stock, both in turns: `clients`, run by `nursery.py`.

Each starts cold in a fresh process with its own time limit, and is killed if it hangs, so that the others continue.
A ratio is ours over stock's, over the rounds in which both finished.
"""

import json
import select
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import isolated
import fixture
from crew import in_order
from ratios import ratio, spread
from ways import Way

HERE = Path(__file__).parent
LIMIT = 10.0
IMPORT = 60.0
# For a parent that does not answer although its child's time is over.
MARGIN = 10.0


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
CLIENTS = {
    "stall": Client("stall", {"mib": 16, "blocks": 16, "pause": 0.05}, {"blocks": 6, "mib": 4}),
    "loader": Client("loader", {"images": 512, "batch": 32, "workers": 4}, {"images": 64, "batch": 8, "workers": 2}),
    "capture_loop": Client("capture_loop", {"captures": 6, "pause": 0.15, "mib": 16}, {"captures": 2}),
    "captures": Client("captures", {"captures": 24, "mib": 16}, {"captures": 4}),
    "growing_large, new first": Client(
        "growing_large", {"start_mib": 1100, "steps": 12, "old_first": False}, {"start_mib": 70, "steps": 4}
    ),
    "growing_large, old first": Client(
        "growing_large", {"start_mib": 1100, "steps": 12, "old_first": True}, {"start_mib": 70, "steps": 4}
    ),
    "growing_small": Client(
        "growing_small", {"from_mib": 8, "to_mib": 24, "row_kib": 64}, {"to_mib": 12}, EXACT
    ),
    "exit": Client("exit", {"mib": 8, "pause": 0.05}),
    "rewarm": Client("rewarm", {"mib": 512, "blocks": 8, "pause": 0.5}, {"mib": 32, "blocks": 4}),
    "cold_large": Client("cold_large", {"mib": 129.5, "blocks": 16}, {"mib": 33, "blocks": 4}),
    "clears": Client("clears", {"mib": 16, "rounds": 20, "pause": 0.02}, {"rounds": 4}),
    "busy_streams": Client(
        "busy_streams", {"streams": [1, 8, 31], "cycles": 200_000_000, "pairs": 100}, {"streams": [1, 8]}
    ),
    "external_streams": Client("external_streams", {"streams": 300, "pairs": 200}, {"streams": 20}),
}


class Nursery:
    """The process from which programs with one allocator and these settings are forked."""

    def __init__(self, way: Way, settings: dict, log: Path):
        self._command = [way.python, str(HERE / "nursery.py"), way.name]
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
            raise RuntimeError(f"{' '.join(self._command)} does not start: {isolated.last(self._log)}")

    def run(self, program: str, arguments: dict, limit: float) -> dict:
        """Its figures, or how it failed. A parent that hangs is replaced."""
        asked = {"client": program, "with": arguments, "seconds": limit}
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
            isolated.kill(self._process)
            self._process.stdin.close()
            self._process.stdout.close()


def measure(it: fixture.Fixture) -> None:
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
                left = it.start + it.seconds - time.monotonic()
                if left < 1:
                    return
                limit = min(most, left / len(it.ways))
                arguments = client.arguments | (client.small if it.simulated else {})
                round_ = {}
                for way in in_order(it.ways, number):
                    nursery = nurseries[way, client.settings]
                    round_[way] = nursery.run(client.program, arguments, limit)
                    if "error" in round_[way]:
                        print(f"{name} with {way}: {round_[way]['error']}", flush=True)
                seen[name].append(round_)
                it.write(results(seen))
    finally:
        for nursery in nurseries.values():
            nursery.close()


def results(seen: dict[str, list[dict]]) -> dict:
    return {name: of_client(rounds) for name, rounds in seen.items() if rounds}


def of_client(rounds: list[dict]) -> dict:
    """Both figures and their ratio by figure, and the failures by allocator."""
    whole = [each for each in rounds if all("figures" in own for own in each.values())]
    figures = {}
    for name in whole[0]["stock"]["figures"] if whole else []:
        both = {way: [each[way]["figures"][name] for each in whole] for way in ("stock", "ours")}
        figures[name] = {way: spread(values) for way, values in both.items()}
        figures[name]["unit"] = "times" if "over" in name.split() else "s"
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
    fixture.main(measure)
