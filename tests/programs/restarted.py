"""A training as a cluster restarts it: batches, activations that lie in pinned memory during a step, and a checkpoint at the end.

`restarted.py [--batch N] [--steps N] [--vary]`; BATCH in the environment stands for what a launcher sets per machine. Prints the
bytes that were in use at most and pinned at most, and how long the program waited for pinned memory.
"""

import argparse
import json
import os
import random
import time

from case import COUNTED, MIB, PACED, Requests, pins, settings, sim

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=int(os.environ.get("BATCH", 8)))
parser.add_argument("--steps", type=int, default=int(os.environ.get("STEPS", 12)))
parser.add_argument("--vary", action="store_true", help="each batch is as long as its longest sequence")
parser.add_argument("--lr", type=float)
parser.add_argument("--seed", type=int, default=0)


class Program:
    def __init__(self):
        self.requests = Requests()
        self.live = self.peak = 0

    def request(self, size: int):
        tensor = self.requests.make(size / MIB)
        self.live += size
        self.peak = max(self.peak, self.live)
        return tensor

    def free(self, tensors: list) -> None:
        self.live -= sum(it.nbytes for it in tensors)
        tensors.clear()

    def train(self, batch: int, steps: int, vary: bool, draw: random.Random) -> None:
        for _ in range(steps):
            length = draw.randint(256, 2048) if vary else 1024
            inputs = [self.request(batch * length * it) for it in (512, 64)]
            activations = [self.request(batch * length * it) for it in (1024, 1024, 3072) * 4]
            self.free(activations)
            self.free(inputs)
        self.free([self.request(it * MIB) for it in (96, 33, 7)])


def main() -> None:
    settings({"BUDDY_MAX_MB": 8000}, COUNTED, PACED)
    import torch

    options = parser.parse_args()
    torch.zeros(1, device="cuda")
    # As a model is loaded.
    time.sleep(1)
    program = Program()
    # Outside of Python's generator of numbers, which torch seeds.
    program.train(options.batch, options.steps, options.vary, random.Random(options.seed))
    answer = {"live": program.peak, "pinned": sim()["pinned_peak_bytes"], "pins": pins(), "waited_s": program.requests.figures["in_requests"]}
    if os.environ.get("BUDDY_PLAN") == "auto":
        import pinbuddy

        answer |= {"state": pinbuddy.stats()["auto"]["pinned"]["state"]}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
