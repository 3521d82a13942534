"""Logs how pinned memory stands, step by step, for TensorBoard: ``python tensorboard_stats.py [FOLDER]``.

`log_pinned` is what a program of your own needs. Then: ``tensorboard --logdir FOLDER``.
"""

import sys

import torch

import pinbuddy

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError:
    sys.exit("this example writes for TensorBoard, which is not installed here: pip install tensorboard")


def log_pinned(writer, step: int) -> None:
    """One point in each curve. Nothing where the engine is off: without a GPU, for instance."""
    engine = pinbuddy.stats()["engine"]
    if engine is None:
        return
    mib = {
        "pinned": engine["pinned_bytes"]["current"],
        "active": engine["active_bytes"]["current"],
        "pending": engine["pending_bytes"]["current"],
        "idle": engine["idle_bytes"],
    }
    writer.add_scalars("pinned memory, MiB", {name: size / 2**20 for name, size in mib.items()}, step)
    # Since the start of the program; a rising curve after the first steps is worth a look.
    writer.add_scalar("pinned memory/requests that found no room", engine["misses"], step)


def main() -> None:
    folder = sys.argv[1] if len(sys.argv) > 1 else "runs"
    with SummaryWriter(folder) as writer:
        kept = []
        for step in range(20):
            # A step of your program.
            kept = [*kept[-3:], torch.empty(8 << 20, dtype=torch.uint8, pin_memory=True)]
            log_pinned(writer, step)
    print(f"tensorboard --logdir {folder}")


if __name__ == "__main__":
    main()
