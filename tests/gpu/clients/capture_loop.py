"""Graph captures with a pinned batch and other work between them, as in a starting server: each capture empties the
cache, and later requests may have to pin again."""

import time

import torch
from pinned import Requests, on_device


def run(captures: int, pause: float, mib: int) -> dict[str, float]:
    device, requests, entering, graphs = on_device(mib), Requests(), [], []
    requests.pinned(mib)
    time.sleep(pause)
    for _ in range(captures):
        graph = torch.cuda.CUDAGraph()
        start = time.perf_counter()
        with torch.cuda.graph(graph):
            entering.append(time.perf_counter() - start)
            device.add_(1)
        graphs.append(graph)
        batch = requests.pinned(mib)
        device.copy_(batch, non_blocking=True)
        torch.cuda.synchronize()
        del batch
        time.sleep(pause)
    return requests.figures() | {"entering captures": sum(entering)}
