"""A server that sizes its pools by what is free finds as much with a plan as without one, in the first run and in the second.

    python examples/looks_first.py     # stock, a first run with BUDDY_PLAN and BUDDY_DEVICE_PLAN, a second one

It loads weights, does a forward pass to see what that takes, empties the cache, and fills what is left with a pool. With
BUDDY_WARMUP=off a plan pins nothing on the host before the first request. Plans of device memory need torch 2.11.
"""

import tempfile
import time

from beside import MIB, STOCK, figures, require, run

BLOCKS = 8


def measure() -> dict:
    import pinbuddy
    import torch

    def block(mib: float) -> torch.Tensor:
        return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda")

    def forward(mib: int) -> None:
        hidden = block(mib)
        for _ in range(8):
            wide = block(3 * mib)
            hidden = block(mib)
            del wide
        place = torch.empty(hidden.numel(), dtype=torch.uint8, pin_memory=True)
        place.copy_(hidden, non_blocking=True)
        torch.cuda.synchronize()

    weights = [block(10) for _ in range(12)]
    time.sleep(1)  # As long as a small model takes to load: a plan that pins by itself has pinned by then.
    # Calls of the driver on the host so far.
    pinned = torch.cuda.host_memory_stats()["num_host_alloc"]
    forward(24)
    torch.cuda.empty_cache()
    reserved = torch.cuda.memory_reserved() // MIB
    free, total = torch.cuda.mem_get_info()
    # As on a device of 4 GiB at most, so that this ends soon.
    share = free - max(total - (MIB << 12), 0) - 128 * MIB
    pool = [block(share // BLOCKS // MIB) for _ in range(BLOCKS)]
    for number in range(40):
        forward([24, 6, 12, 3][number % 4])
    del weights
    size = sum(it.numel() for it in pool) // MIB
    stats = pinbuddy.stats()
    served = [(stats["plan"] or {"hits": 0})["hits"], sum(it["hits"] for it in stats["device"] or [])]
    return {"pinned": pinned, "reserved": reserved, "free": free // MIB, "pool": size, "served": served}


def compare() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        plans = {"BUDDY_PLAN": f"{folder}/host.plan", "BUDDY_DEVICE_PLAN": f"{folder}/device.plan", "BUDDY_WARMUP": "off"}
        runs = {"stock": figures(__file__, **STOCK), "first run": figures(__file__, **plans), "second run": figures(__file__, **plans)}
    lines = [f"{'MiB':12} free  pool   served by plans"]
    for name, it in runs.items():
        lines.append(f"{name:12}{it['free']:5}{it['pool']:6}   {it['served'][0]} host, {it['served'][1]} device")
        same = all(it[what] == runs["stock"][what] for what in ("reserved", "pool"))
        require(same and not it["pinned"], "nothing taken before it looks, and the same pool in each run", runs)
    require(min(runs["second run"]["served"]) > 0, "the second run has plans", runs)
    return lines


if __name__ == "__main__":
    run(measure, compare)
