"""Measures the requirements of a production allocator: memory after a clear, fit, steps. test_production.py has the bounds.

clear    the table of pytorch/pytorch#181094: a training trace with 3.7 GB of small buffers that
         live on; pinned before and after empty_cache
fit      pinned over requested, for shapes that people serve models with
step     155 tensors a step, as in pytorch/pytorch#186162: calls to the driver in each step

All count pins without locking memory (PINBUDDY_SIM_LOCK=0), so that they need no more
than the machine has.
"""

import json
import subprocess
from pathlib import Path

from measure import environment

HERE = Path(__file__).parent
COUNT = {"PINBUDDY_SIM_LOCK": "0", "PINBUDDY_SIM_QUIET": "1", "BUDDY_MAX_MB": "200000"}
# Mapped memory would be touched.
COUNT["BUDDY_BACKING"] = "cuda"


def run(python: str, program: str, **settings: str):
    """The program's answer, in its own process with only these settings."""
    command = [python, "-c", "from program import *\n" + program]
    done = subprocess.run(command, cwd=HERE, env=environment(**settings), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{python} exited with {done.returncode}:\n{done.stderr}")
    (value,) = json.loads(done.stdout.splitlines()[-1])
    return value


# Sizes of small buffers: optimizer states, norms, biases, rows of embeddings. Four in ten are freed at the end of their layer;
# 3.7 GB of the others live to the end. Each layer also offloads activations, which live to the end of the step.
CLEAR = """
import random
rng = random.Random(181094)
use_gpu()
small, live, step = [], 0, 0
while live < 3.7e9:
    step += 1
    offloaded = []
    for layer in range(32):
        offloaded += [pinned(rng.choice([9, 33, 65, 129.5]) * rng.uniform(0.8, 1)) for _ in range(2)]
        passing = []
        for _ in range(20):
            buffer = pinned(rng.choice([0.0625, 0.25, 0.5, 1, 2, 3.5]))
            if rng.random() < 0.4:
                passing.append(buffer)
            elif live < 3.7e9:
                small.append(buffer)
                live += buffer.numel()
        del passing
    del offloaded
def allocated():
    return host_stats()["allocated_bytes.current"]
before = allocated()
torch._C._host_emptyCache()
answer({"live": live, "before": before, "after": allocated(), "steps": step})
"""

# The issue's own run had 7 blocks of 4 GB.
LARGE_BLOCKS = {"BUDDY_BLOCK_SIZE_MB": "4096", "BUDDY_BLOCK_COUNT": "7", "BUDDY_WARMUP": "sync"}


def clear(stock: str, fork: str) -> dict:
    return {
        "stock": run(stock, CLEAR, **COUNT),
        "threshold 4 MB": run(fork, CLEAR, **COUNT, BUDDY_WARMUP="sync"),
        "threshold 0": run(fork, CLEAR, **COUNT, BUDDY_WARMUP="sync", BUDDY_THRESHOLD_MB="0"),
        "threshold 4 MB, 7 x 4 GB": run(fork, CLEAR, **COUNT, **LARGE_BLOCKS),
        "threshold 0, 7 x 4 GB": run(fork, CLEAR, **COUNT, **LARGE_BLOCKS, BUDDY_THRESHOLD_MB="0"),
    }


# Llama-3-8B in bfloat16: 32 layers of 4096 with 8 KV heads and 14336 in between, 128256 words; the cache holds 27,000 tokens.
SHAPES = {
    "129.5 MiB x 64": "[129.5] * 64",
    "2.083 GiB x 8": "[2.083 * 1024] * 8",
    "Llama-3-8B": "[1002, 1002] + 32 * ([32, 8, 8, 32, 112, 112, 112, 0.0078125, 0.0078125] + 2 * [27000 * 2 / 1024])",
    "4 to 900 MiB": "[4 * 225 ** rng.random() for _ in range(80)]",
}
FIT = """
import random
rng = random.Random(7)
use_gpu()
sizes = {shape}
kept = [pinned(mib) for mib in sizes]
if {engine}:
    until(lambda: warm_up()["phase"] != "running")
requested = sum(it.numel() for it in kept)
stats = host_stats()
answer({{"requested": requested, "pinned": stats["allocated_bytes.current"]}})
"""
EXACT = {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"}


def ratio(python: str, name: str, engine: bool, **settings: str) -> float:
    """Pinned over requested, for one shape."""
    program = FIT.format(shape=SHAPES[name], engine=engine)
    it = run(python, program, **COUNT, **settings)
    return it["pinned"] / it["requested"]


STEP = """
import random
use_gpu()
rng = random.Random(186162)
if {engine}:
    pinbuddy.warm_up(wait=True)
pins = []
for step in range(5):
    before = sim()["pins"]
    tensors = [pinned(rng.uniform(5, 20)) for _ in range(155)]
    del tensors
    pins.append(sim()["pins"] - before)
answer(pins)
"""


def step(stock: str, fork: str) -> dict:
    """Calls to the driver in each of five steps; sizes vary from step to step."""
    return {"stock": run(stock, STEP.format(engine=False), **COUNT), "fork": run(fork, STEP.format(engine=True), **COUNT)}
