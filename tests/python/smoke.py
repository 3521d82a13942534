"""A smoke test of a fork, for any release: `ci/matrix.sh` runs it in the simulator.

With the default settings but for the size of a block. Says what is wrong by failing.
"""

import os

os.environ["BUDDY_BLOCK_SIZE_MB"] = "64"
os.environ["BUDDY_BLOCK_COUNT"] = "2"
os.environ["BUDDY_WARMUP"] = "sync"

import smoke_device
from program import host_stats, of_engine, pinbuddy, pinned, segments, sim, torch, use_gpu
from release import block_bytes

assert "pinbuddy" in torch.__version__ and pinbuddy.enabled()
use_gpu()
large, small = pinned(8), pinned(1)
assert large.is_pinned() and small.is_pinned()
assert of_engine(large) and not of_engine(small)
assert segments() == [64, 64]

# Copies both ways, from the engine's memory and from stock's, on a stream.
stream = torch.cuda.Stream()
for host in (large, small):
    host.random_(0, 256)
    back = torch.empty_like(host, pin_memory=True)
    with torch.cuda.stream(stream):
        back.copy_(host.to("cuda", non_blocking=True), non_blocking=True)
    stream.synchronize()
    assert bool((host == back).all())
del back

# Counted once, and as the driver counts it.
stats = host_stats()
assert stats["num_host_alloc"] == sim()["pins"]
assert stats["allocated_bytes.current"] == block_bytes(sim())

del large, small, host
torch._C._host_emptyCache()
assert segments() == [] and sim()["pinned_bytes"] == 0
device = smoke_device.check()
print(f"torch {torch.__version__}: served by the engine, copied both ways, counted, given back; {device}")
