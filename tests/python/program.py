"""Helpers for programs that tests run in their own process: ``from program import *``, the modules of these lines among them.

Works with stock PyTorch too, where ``pinbuddy`` is None.
"""

import contextlib
import ctypes
import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from release import COUNTS_WHAT_IS_ACTIVE, block_bytes, host_stats

try:
    import pinbuddy
except ImportError:  # with stock
    pinbuddy = None

MIB = 1 << 20
# A snapshot of memory with stacks looks for compiled code's there, and imports it for two seconds: these programs compile none.
torch._inductor = None


def pinned(mib: float) -> torch.Tensor:
    """A pinned tensor of so many MiB, of bytes."""
    return torch.empty(int(mib * MIB), dtype=torch.uint8, pin_memory=True)


def block(mib: float, **more) -> torch.Tensor:
    """The same in device memory."""
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda", **more)


def answer(*values) -> None:
    """Prints what the test compares: the last line of standard output."""
    print(json.dumps(values), flush=True)


def use_gpu() -> None:
    """Initializes CUDA, as every training program does."""
    torch.zeros(1, device="cuda")


def hold() -> None:
    """The current stream gets stuck until `let_go`; on a GPU for long enough."""
    if hasattr(ctypes.CDLL(None), "pinbuddy_sim_hold"):
        ctypes.CDLL(None).pinbuddy_sim_hold(ctypes.c_size_t(torch.cuda.current_stream().cuda_stream))
    else:
        torch.cuda._sleep(1_500_000_000)


def let_go() -> None:
    """All streams go on, and end."""
    if hasattr(ctypes.CDLL(None), "pinbuddy_sim_let_go"):
        ctypes.CDLL(None).pinbuddy_sim_let_go()
    torch.cuda.synchronize()


def seconds(act) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def together(*acts) -> None:
    threads = [threading.Thread(target=it) for it in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Items(torch.utils.data.Dataset):
    """A data set: its length, and a function of an index."""

    def __init__(self, length: int, item):
        self.length, self.item = length, item

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.item(index)


@contextlib.contextmanager
def elsewhere(context):
    """Another thread is within the context meanwhile."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(context.__enter__).result()
        try:
            yield
        finally:
            thread.submit(context.__exit__, None, None, None).result()


def refused(act) -> str | None:
    """The type and the text of the error that it ends with."""
    try:
        act()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def forked(act, end=os._exit) -> int:
    """The exit status of a forked child that acts and ends; SIGALRM ends one that takes longer than a minute."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            status = act() or 0
        except BaseException as error:
            print("child:", repr(error), file=sys.stderr, flush=True)
            os._exit(100)
        end(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def until(condition, within: float = 60.0) -> None:
    """Waits for a condition; fails after a timeout."""
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the condition did not come true")
        time.sleep(0.002)


def sim() -> dict:
    """The simulator's counters; ``pins`` and ``unpins`` are those of either kind."""
    text = ctypes.create_string_buffer(1 << 16)
    ctypes.CDLL(None).pinbuddy_sim_stats_json(text, ctypes.c_size_t(len(text)))
    counts = json.loads(text.value)
    counts["pins"] = counts["host_allocs"] + counts["host_registers"]
    counts["unpins"] = counts["host_frees"] + counts["host_unregisters"]
    return counts


def segments() -> list[int]:
    """The sizes of the engine's segments, in MiB, in ascending order."""
    return sorted(it["bytes"] / MIB for it in pinbuddy.stats()["segments"])


def top(process: int | None = None, *options: str) -> dict:
    """What ``pinbuddy top`` shows of this process or of another one."""
    command = [sys.executable, "-m", "pinbuddy", "top", "--json", *options, str(process or os.getpid())]
    own = os.environ | {"BUDDY_LIVE": "", "BUDDY_TRACE": "", "BUDDY_PLAN": ""}
    done = subprocess.run(command, env=own, capture_output=True, text=True)
    assert done.stderr == "", done.stderr
    return json.loads(done.stdout)["processes"][0]


def tested_library() -> ctypes.CDLL:
    """Ours, for what only tests call."""
    import plugin

    return ctypes.CDLL(str(plugin.library()))


def warm_up() -> dict:
    return pinbuddy.stats()["warm_up"]


def engine_segment(tensor: torch.Tensor) -> dict | None:
    """The engine's segment that the tensor lies in."""
    start = tensor.data_ptr()
    end = start + tensor.nbytes
    found = (it for it in pinbuddy.stats()["segments"] if it["address"] <= start and end <= it["address"] + it["bytes"])
    return next(found, None)


def of_engine(tensor: torch.Tensor) -> bool:
    return engine_segment(tensor) is not None
