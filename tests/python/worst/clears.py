"""A loop that empties the cache at every step: 16 MiB, copied and freed, then 30 ms of other work."""

import time

from case import LOCKED, Requests, finish, scaled, start

torch = start(LOCKED)
device = torch.zeros(16 << 20, dtype=torch.uint8, device="cuda")
requests = Requests()
begin = time.perf_counter()
for _ in range(scaled(60, 20)):
    batch = requests.make(16)
    device.copy_(batch, non_blocking=True)
    torch.cuda.synchronize()
    del batch
    torch._C._host_emptyCache()
    time.sleep(0.03)
finish(seconds=time.perf_counter() - begin, **requests.figures)
