"""What the programs of `cargo xtask bench --only worst` share.

Each does one thing for which an allocator that pins ahead can be worse than stock, and prints its figures as one
line of JSON. To run one by itself, with stock's Python (`cargo xtask venv --stock`) or the fork's:

    cargo xtask sim -- "$(cargo xtask venv)/bin/python" tests/python/worst/captures.py --quick

and in turns with both, with ratios: `cargo xtask bench --only worst/captures`. A setting in the environment
(`BUDDY_GROWTH=exact cargo xtask sim …`) takes the place of a program's own.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))

MIB = 1 << 20
QUICK = "--quick" in sys.argv
ARGUMENTS = [it for it in sys.argv[1:] if not it.startswith("--")]

# Nothing is touched or locked, so that more can be pinned than there is; memory of ours would be touched.
COUNTED = {"PINBUDDY_SIM_LOCK": 0, "BUDDY_BACKING": "cuda", "BUDDY_MAX_MB": 200_000}
# Locked for real, on machines that have other things to do.
LOCKED = {"BUDDY_MAX_MB": 6_000}
# As a driver pins: one region at a time, and no faster than this.
PACED = {"PINBUDDY_SIM_PIN_MS_PER_GB": 300}
EXACT = {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"}


def scaled(full: int, quick: int) -> int:
    return quick if QUICK else full


def settings(*groups: dict, **more) -> None:
    """For this process and those that it starts; what the caller has set stays. Before torch is imported."""
    for group in (*groups, more):
        for name, value in group.items():
            os.environ.setdefault(name, str(value))


def start(*groups: dict, **more):
    """torch with these settings, and its GPU in use."""
    settings({"PINBUDDY_SIM_QUIET": 1}, *groups, **more)
    warnings.simplefilter("ignore")
    import torch

    torch.zeros(1, device="cuda")
    return torch


def of_bytes(size: int):
    """A pinned tensor of so many bytes."""
    import torch

    return torch.empty(size, dtype=torch.uint8, pin_memory=True)


class Requests:
    """Pinned tensors, and how long each was waited for."""

    def __init__(self):
        self.seconds = []

    def make(self, mib: float):
        begin = time.perf_counter()
        tensor = of_bytes(int(mib * MIB))
        self.seconds.append(time.perf_counter() - begin)
        return tensor

    @property
    def figures(self) -> dict:
        return {"in_requests": sum(self.seconds), "slowest": max(self.seconds)}


@contextlib.contextmanager
def busy(processes: int):
    """Beside so many processes that compute and allocate nothing, as workers of a DataLoader do."""
    # The simulator is none of their business.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    endless = [sys.executable, "-S", "-c", "while True: pass"]
    others = [subprocess.Popen(endless, env=plain) for _ in range(processes)]
    try:
        yield
    finally:
        for it in others:
            it.kill()
            it.wait()


def pins() -> int:
    """Calls that have pinned memory so far, whoever made them."""
    from program import sim

    return sim()["pins"]


def pinned_mib() -> float:
    """MiB that are page-locked now."""
    from program import sim

    return sim()["pinned_bytes"] / MIB


def pinned_ever_mib() -> float:
    """MiB of all pins together, those that are unpinned again included."""
    from program import host_stats

    return host_stats()["allocated_bytes.allocated"] / MIB


def finish(**figures: float) -> None:
    """Prints them, with all pins and the most that was pinned; the end of the process."""
    from program import sim

    counts = sim()
    own = {"pins": counts["pins"], "peak_mib": counts["pinned_peak_bytes"] / MIB}
    print(json.dumps(own | figures), flush=True)
    # How long an end takes is measured by `exit.py`.
    os._exit(0)
