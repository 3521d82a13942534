"""Memory that nobody uses goes back by itself, and is there again when it is needed.

    python examples/idle.py     # with BUDDY_IDLE_S=1, beside stock

A program pins eight buffers, uses them, and rests. The table has the MiB that are pinned then, as PyTorch counts them.
"""

import time

from beside import MIB, STOCK, figures, require, run

BUFFERS, EACH, KEPT = 8, 12, 8
# Seconds: how long idle memory stays, and how long the program waits at most until it has gone.
IDLE, PATIENCE = 1, 20


def measure() -> dict:
    import pinbuddy
    import torch

    there = torch.zeros(EACH * MIB, dtype=torch.uint8, device="cuda")
    kept = torch.full((KEPT * MIB,), 7, dtype=torch.uint8).pin_memory()

    def pinned() -> int:
        stats = torch.cuda.host_memory_stats()
        # torch before 2.10 counts what is pinned by another name.
        return stats.get("reserved_bytes.current", stats.get("allocated_bytes.current", 0)) // MIB

    def works() -> tuple[int, int]:
        buffers = [torch.empty(EACH * MIB, dtype=torch.uint8, pin_memory=True).fill_(1) for _ in range(BUFFERS)]
        for it in buffers:
            there.copy_(it, non_blocking=True)
        torch.cuda.synchronize()
        return pinned(), resident()

    (first, before), end = works(), time.monotonic() + PATIENCE
    while pinbuddy.enabled() and (pinned() > 2 * KEPT or before - resident() < BUFFERS * EACH) and time.monotonic() < end:
        time.sleep(0.1)
    after = pinned(), before - resident()
    return {"works": first, "rests": after[0], "given back": after[1], "works again": works()[0], "whole": bool((kept == 7).all())}


def resident() -> int:
    """MiB of memory that this process has, as the kernel counts them: huge pages of a pool apart."""
    with open("/proc/self/status") as lines:
        return sum(int(it.split()[1]) for it in lines if it.startswith(("VmRSS:", "HugetlbPages:"))) >> 10


def compare() -> list[str]:
    need, stock, ours = BUFFERS * EACH, figures(__file__, **STOCK), figures(__file__, BUDDY_IDLE_S=str(IDLE), BUDDY_WARMUP="off")
    require(stock["rests"] >= need, "stock keeps its buffers", stock)
    require(min(ours["works"], ours["works again"]) >= need, "memory is there while the program works", ours)
    require(ours["rests"] <= 2 * KEPT and ours["given back"] >= need, f"the machine has idle memory again within {PATIENCE} s", ours)
    require(ours["whole"], "what is in use keeps its content", ours)
    return ["MiB pinned    stock  pinbuddy", *(f"{name:12}{stock[name]:7}{ours[name]:10}" for name in ("works", "rests", "works again"))]


if __name__ == "__main__":
    run(measure, compare)
