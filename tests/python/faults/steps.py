"""For the programs of a sweep: ``from faults.steps import *``.

A program is a row of steps, each of which may fail and leaves the others alone. Faults begin when `steps` is
imported, before torch's first CUDA call, as the environment's `FAULT_PLAN` says. `finish` ends them, looks at what
is left, and prints what became of each step. Works with stock as well.
"""

import contextlib
import ctypes
import gc
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor  # noqa: F401: for programs

simulator = ctypes.CDLL(None)


def plan(text: str) -> None:
    """From now on these calls fail, and all are counted anew."""
    if simulator.pinbuddy_sim_faults(text.encode()) != 0:
        sys.exit(f"the simulator does not take the faults {text!r}")


PLAN = os.environ.pop("PINBUDDY_SIM_FAULT_PLAN", "")
plan(PLAN)

import torch  # noqa: E402
from program import MIB, host_stats, until  # noqa: E402
from program import sim as statistics  # noqa: E402

# Contents are looked at by one thread: on a busy machine several wait for each other longer than they work.
torch.set_num_threads(1)

# Seconds after which a stuck stream goes on.
STUCK = 20
PLUGGED = "pinbuddy" in sys.modules and sys.modules["pinbuddy"].stats()["state"] != "absent"
came: dict[str, str] = {}
# The simulator's statistics once a step had ended.
reached: dict[str, dict] = {}


class Corrupt(Exception):
    """What no fault excuses."""


@contextlib.contextmanager
def step(name: str):
    """A part of the program that may fail; what came of it is printed at the end."""
    try:
        yield
        came[name] = "ok"
    except Exception as error:
        came[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    finally:
        reached[name] = statistics()


def pinned(mib: float) -> torch.Tensor:
    """A pinned tensor that no copy has in flight."""
    tensor = torch.empty(int(mib * MIB), dtype=torch.uint8, pin_memory=True)
    size = ctypes.c_size_t(tensor.numel())
    if simulator.pinbuddy_sim_in_flight(ctypes.c_size_t(tensor.data_ptr()), size):
        raise Corrupt("a block was handed out that a copy has in flight")
    return tensor


class Held:
    """Tensors with content that must stay theirs."""

    def __init__(self):
        self.all: list[tuple[torch.Tensor, int]] = []

    def add(self, *sizes: float) -> torch.Tensor:
        """Tensors of so many MiB; the last one."""
        for mib in sizes:
            stamp = len(self.all) % 250 + 1
            self.all.append((pinned(mib).fill_(stamp), stamp))
        return self.all[-1][0]

    def check(self) -> None:
        for tensor, stamp in self.all:
            if int(tensor.min()) != stamp or int(tensor.max()) != stamp:
                raise Corrupt(f"{tensor.numel()} bytes lost their content")

    def drop(self, count: int) -> None:
        self.check()
        del self.all[:count]


@contextlib.contextmanager
def stuck(stream: torch.cuda.Stream):
    """The stream does nothing meanwhile; not for good, since PyTorch waits for all streams where device memory is used up."""
    simulator.pinbuddy_sim_hold(ctypes.c_size_t(stream.cuda_stream))
    late = threading.Timer(STUCK, simulator.pinbuddy_sim_let_go)
    late.start()
    try:
        yield
    finally:
        late.cancel()
        simulator.pinbuddy_sim_let_go()


def audit() -> str:
    """What the engine's audit finds wrong; only a library with assertions can be asked."""
    if not PLUGGED:
        return ""
    from pinbuddy import _library

    library, text = _library.load(), ctypes.create_string_buffer(1 << 12)
    if hasattr(library, "pinbuddy_audit"):
        library.pinbuddy_audit(text, ctypes.c_size_t(len(text)))
    return text.value.decode()


def finish(held: Held) -> None:
    """Faults are over: what is left must work, and be accounted for."""
    simulator.pinbuddy_sim_let_go()
    before, at_the_steps = statistics(), dict(reached)
    found = audit()
    plan("")
    with step("content"):
        held.check()
    with step("afterwards"):
        kept = pinned(3).fill_(7)
        small = pinned(0.1).fill_(8)
        back = kept.to("cuda", non_blocking=True).cpu()
        if int(back.min()) != 7 or int(small.max()) != 8:
            raise Corrupt("a copy that was made afterwards is wrong")
        del kept, small, back
    held.all.clear()
    with step("at rest"):
        for _ in range(2):
            gc.collect()
            torch.cuda.synchronize()
            torch._C._host_emptyCache()
            # What is being pinned is known to the simulator before it is known to statistics.
            until(lambda: not PLUGGED or sys.modules["pinbuddy"].stats()["warm_up"]["phase"] != "running", 50)
    left = statistics()
    print(json.dumps({
        "steps": came, "reached": at_the_steps, "before": before, "left": left, "audit": found or audit(),
        "known": host_stats()["allocated_bytes.current"],
    }), flush=True)
