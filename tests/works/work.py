"""What the programs of this folder share: the model of the examples, and the report that each prints at its end.

A program does one kind of work with pinned memory as users do it, through torch alone, with fixed seeds. It knows nothing of
pinbuddy and sets nothing: `measure_works.py` starts it with settings. In the simulator kernels compute nothing; copies and pins are
made.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[2] / "examples"))
SMALL = os.environ.get("PINBUDDY_TEST_SMALL") == "1"
"""Whether a test only tries the program."""


def run(program: Callable[[], None]) -> None:
    """Runs the program and prints what torch counts of pinned memory, by stock's names; times are in microseconds."""
    torch.manual_seed(0)
    torch.cuda.init()
    program()
    torch.cuda.synchronize()
    report()


def report() -> None:
    stats = torch.cuda.host_memory_stats()
    line = {
        "pinned": stats["allocated_bytes.peak"],
        "pins": stats["num_host_alloc"],
        "driver_us": stats["host_alloc_time.total"] + stats["host_free_time.total"],
    }
    # One write: ranks share the pipe.
    os.write(1, f"{json.dumps(line)}\n".encode())


def model(layers: int, width: int, tokens: int, vocabulary: int) -> torch.nn.Module:
    """The examples' decoder."""
    from common import Model

    options = {"layers": layers, "width": width, "tokens": tokens, "vocabulary": vocabulary}
    return Model(argparse.Namespace(**options))
