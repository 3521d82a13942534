"""What the programs of this folder share.

Each does one thing as users do it, in a function `run` whose arguments are its sizes, and returns its figures by name. Here they are
timed alone, with settings for the simulator; `cargo xtask bench --only worst` and a run on a GPU (docs/gpu.md) start them with stock
and with ours in turns, `measure_works.py` with settings. To run one, with stock's Python (`cargo xtask venv --stock`) or the fork's:

    cargo xtask sim -- "$(cargo xtask venv)/bin/python" tests/programs/captures.py --quick

It prints one line of JSON. A setting in the environment (`BUDDY_GROWTH=exact cargo xtask sim …`) takes the place of a program's own.
torch is imported where it is used: settings have to be there before.
"""

import argparse
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE.parent / "python"), str(HERE.parents[1] / "examples")]

MIB = 1 << 20
QUICK = "--quick" in sys.argv
WORDS = [it for it in sys.argv[1:] if not it.startswith("--")]

# Nothing is touched or locked, so that more can be pinned than there is; memory of ours would be touched.
COUNTED = {"PINBUDDY_SIM_LOCK": 0, "BUDDY_BACKING": "cuda", "BUDDY_MAX_MB": 200_000}
# Locked for real, on machines that have other things to do.
LOCKED = {"BUDDY_MAX_MB": 6_000}
# As a driver pins: one region at a time, and no faster than this.
PACED = {"PINBUDDY_SIM_PIN_MS_PER_GB": 300}
EXACT = {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"}


def scaled(full, quick):
    return quick if QUICK else full


def word(place: int, otherwise: str) -> str:
    """A word of the command line."""
    return WORDS[place] if len(WORDS) > place else otherwise


def settings(*groups: dict) -> None:
    """For this process and those that it starts; what the caller has set stays. Before torch is imported."""
    for group in ({"PINBUDDY_SIM_QUIET": 1}, *groups):
        for name, value in group.items():
            os.environ.setdefault(name, str(value))


def main(run, *groups: dict, **arguments) -> None:
    """A program by itself, with these settings and arguments."""
    settings(*groups)
    warnings.simplefilter("ignore")
    import torch

    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    report(run(**arguments) or {})


def report(figures: dict) -> None:
    """Prints them, with all pins and the most that was pinned; the end of the process."""
    import torch
    from release import host_stats

    stats, counts = host_stats(), sim()
    host = {"host_pinned": stats["allocated_bytes.peak"], "host_pins": stats["num_host_alloc"]}
    host["host_driver_us"] = stats["host_alloc_time.total"] + stats["host_free_time.total"]
    if counts:
        host |= {"pins": counts["pins"], "peak_mib": counts["pinned_peak_bytes"] / MIB}
    torch.cuda.synchronize()
    # One write: ranks share the pipe.
    os.write(1, f"{json.dumps(host | figures)}\n".encode())
    # What records writes its files at the end. How long an end takes is measured by `exit.py`.
    if not {"BUDDY_PLAN", "BUDDY_TRACE"} & os.environ.keys():
        os._exit(0)


def of_bytes(size: int):
    """A pinned tensor of so many bytes."""
    import torch

    return torch.empty(size, dtype=torch.uint8, pin_memory=True)


def on_device(mib: float):
    import torch

    return torch.zeros(int(mib * MIB), dtype=torch.uint8, device="cuda")


class Requests:
    """Pinned tensors, and how long each was waited for."""

    def __init__(self):
        self.seconds: list[float] = []

    def make(self, mib: float):
        begin = time.perf_counter()
        tensor = of_bytes(int(mib * MIB))
        self.seconds.append(time.perf_counter() - begin)
        return tensor

    @property
    def figures(self) -> dict[str, float]:
        return {"in_requests": sum(self.seconds), "slowest": max(self.seconds)}


def give_back() -> float:
    """Empties the cache, as a graph capture does; the seconds that it took."""
    import torch

    begin = time.perf_counter()
    torch._C._host_emptyCache()
    return time.perf_counter() - begin


@contextlib.contextmanager
def busy(processes: int):
    """Beside so many processes that compute and allocate nothing, as workers of a DataLoader do."""
    # The simulator is none of their business, and they end with this process.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    endless = [sys.executable, "-S", "-c", "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"]
    others = [subprocess.Popen(endless, env=plain) for _ in range(processes)]
    try:
        yield
    finally:
        for it in others:
            it.kill()
            it.wait()


def sim() -> dict | None:
    """The simulator's counters; None on a GPU."""
    if not hasattr(ctypes.CDLL(None), "pinbuddy_sim_stats_json"):
        return None
    import program

    return program.sim()


def pins() -> int:
    """Calls that have pinned memory so far, whoever made them."""
    return sim()["pins"]


def pinned_mib(which: str = "current") -> float:
    """MiB that are pinned now, at most so far (`peak`), or in all pins together (`allocated`)."""
    from release import host_stats

    counts, names = sim(), {"current": "pinned_bytes", "peak": "pinned_peak_bytes"}
    if counts and which in names:
        return counts[names[which]] / MIB
    return host_stats()[f"allocated_bytes.{which}"] / MIB


def decoder(layers: int, width: int, tokens: int, vocabulary: int):
    """The examples' model, and a function that gives two sequences with the token that follows."""
    import torch
    from common import Model

    sizes = argparse.Namespace(layers=layers, width=width, tokens=tokens, vocabulary=vocabulary)
    return Model(sizes), lambda: torch.randint(vocabulary, (2, tokens + 1)).cuda()
