"""What the fork changes for a program: memory pinned, calls to the driver, time in allocation.

usage: effect.py STOCK_PYTHON FORK_PYTHON [--json FILE]   (in the simulator: cargo xtask sim -- ...)

Two workloads, each in a process of its own, stock and fork interleaved:

shapes   28 buffers of 129.5 MiB, the size that pytorch/pytorch#150517 reports
steps    nine pairs of 3 to 200 MiB whose sizes vary from step to step, 20 steps

The simulator locks pages for real, with mlock; what a GPU's driver takes for that is its own.
"""

import json
import os
import statistics
import subprocess

from measure import arguments, save

WORKLOAD = """
import json, random, sys, time, torch
MIB = 1 << 20
name = sys.argv[1]

def pinned(size):
    global spent, live, largest
    start = time.perf_counter()
    tensor = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    spent += time.perf_counter() - start
    return tensor

spent = 0.0
torch.cuda.init()
if name == "shapes":
    size = 129 * MIB + MIB // 2
    kept = [pinned(size) for _ in range(28)]
    largest, later = 28 * size, None
else:
    rng = random.Random(2)
    base = [3, 7, 12, 20, 33, 48, 65, 110, 200]
    largest, first = 0, None
    for step in range(20):
        sizes = [int(it * MIB * rng.uniform(0.7, 1.3)) for it in base for _ in range(2)]
        kept = [pinned(size) for size in sizes]
        largest = max(largest, sum(sizes))
        del kept
        if step == 0:
            first, spent, calls = spent, 0.0, torch.cuda.host_memory_stats()["num_host_alloc"]
stats = torch.cuda.host_memory_stats()
result = {"pinned_over_live": stats["allocated_bytes.peak"] / largest}
if name == "steps":
    result |= {"first_step_s": first, "later_steps_s": spent,
               "later_pins": stats["num_host_alloc"] - calls}
print(json.dumps(result))
"""

# As many blocks as the workload needs, as a user would set them.
SETTINGS = {
    "shapes": {"BUDDY_BLOCK_SIZE_MB": "1024", "BUDDY_BLOCK_COUNT": "4"},
    "steps": {"BUDDY_BLOCK_SIZE_MB": "512", "BUDDY_BLOCK_COUNT": "3"},
}


def run(python: str, workload: str) -> dict:
    command = [python, "-c", WORKLOAD, workload]
    environment = os.environ | SETTINGS[workload]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare(stock: str, fork: str, workload: str, processes: int) -> dict:
    """The median of each figure, stock and fork, over interleaved processes."""
    runs = {"stock": [], "fork": []}
    for _ in range(processes):
        for which, python in (("stock", stock), ("fork", fork)):
            runs[which].append(run(python, workload))
    return {
        which: {key: statistics.median(it[key] for it in results) for key in results[0]}
        for which, results in runs.items()
    }


def main() -> None:
    options = arguments(__doc__)
    results = {
        "shapes": compare(options.stock, options.fork, "shapes", 3),
        "steps": compare(options.stock, options.fork, "steps", 5),
    }
    print(f"{'':34}{'stock':>10}{'fork':>10}")
    for workload, by in results.items():
        for key in by["stock"]:
            print(f"{workload + ' ' + key:34}{by['stock'][key]:10.3f}{by['fork'][key]:10.3f}")
    save(options, results)


if __name__ == "__main__":
    main()
