"""A cache that is emptied in a loop, with a copy and a little other work in between."""

import time

import torch
from pinned import Requests, give_back, on_device


def run(mib: int, rounds: int, pause: float) -> dict[str, float]:
    device, requests, gave = on_device(mib), Requests(), []
    for _ in range(rounds):
        block = requests.pinned(mib)
        device.copy_(block, non_blocking=True)
        torch.cuda.synchronize()
        del block
        gave.append(give_back())
        time.sleep(pause)
    return requests.figures() | {"emptying the cache": sum(gave)}
