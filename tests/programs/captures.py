"""Graph captures with a request between them, as in a starting serving engine; without a pause, or with other work between them.

Each capture empties the cache, so all memory pinned ahead is unpinned and pinned again.
"""

import time

from case import LOCKED, Requests, main, on_device


def run(captures: int, mib: float = 16, pause: float = 0) -> dict[str, float]:
    import torch

    device, requests, graphs, entering = on_device(mib), Requests(), [], 0.0
    begin = time.perf_counter()
    for _ in range(captures):
        batch = requests.make(mib)
        device.copy_(batch, non_blocking=True)
        torch.cuda.synchronize()
        del batch
        time.sleep(pause)
        graphs.append(torch.cuda.CUDAGraph())
        entered = time.perf_counter()
        with torch.cuda.graph(graphs[-1]):
            entering += time.perf_counter() - entered
            device.add_(1)
    seconds = time.perf_counter() - begin - captures * pause
    return {"seconds": seconds, "entering": entering} | requests.figures


if __name__ == "__main__":
    main(run, LOCKED, captures=40)
