"""Consecutive graph captures, each right after one request for a pinned block."""

import time

import torch
from pinned import Requests, on_device


def run(captures: int, mib: int) -> dict[str, float]:
    device, requests, graphs = on_device(mib), Requests(), []
    start = time.perf_counter()
    for _ in range(captures):
        block = requests.pinned(mib)
        device.copy_(block, non_blocking=True)
        torch.cuda.synchronize()
        del block
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1]):
            device.add_(1)
    return requests.figures() | {"all captures": time.perf_counter() - start}
