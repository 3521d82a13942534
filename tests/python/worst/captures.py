"""Forty graph captures with a request of 16 MiB between them, as in a starting serving engine.

Each capture empties the cache, so all memory pinned ahead is unpinned and pinned again.
"""

import time

from case import LOCKED, Requests, finish, start

torch = start(LOCKED)
device = torch.zeros(16 << 20, dtype=torch.uint8, device="cuda")
requests, graphs = Requests(), []
begin = time.perf_counter()
for _ in range(40):
    batch = requests.make(16)
    device.copy_(batch, non_blocking=True)
    torch.cuda.synchronize()
    del batch
    graphs.append(torch.cuda.CUDAGraph())
    with torch.cuda.graph(graphs[-1]):
        device.add_(1)
finish(seconds=time.perf_counter() - begin, **requests.figures)
