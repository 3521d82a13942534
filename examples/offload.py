"""Activations of sequences of many lengths wait in pinned memory: the first program to try.

    BUDDY_DISABLE=1 python examples/offload.py            # as stock
    python examples/offload.py                            # as pinbuddy comes
    BUDDY_PLAN=offload.plan python examples/offload.py    # the first run makes a plan, the next start with it

It is in the wheel, too: `pinbuddy try`, and `pinbuddy try --plan offload.plan`.

Each step copies what its layers made to the host, and back. Sequences have as many tokens as they have, so that sizes
vary from step to step; a new size may have to be pinned by the driver, and that is where a step waits.
"""

import argparse
import random
import time

import torch

MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--width", type=int, default=2048)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit(
            "there is no GPU here. Run it on a machine with one; what needs none: pinbuddy report, advise and plan, of a trace that "
            "was recorded elsewhere. With pinbuddy's sources, on a simulated GPU: cargo xtask sim -- pinbuddy try"
        )
    lengths = random.Random(0)
    torch.zeros(1, device="cuda")
    most = waited = 0
    before = pins()
    print("step  tokens  MiB offloaded  pins  ms to have the memory")
    for step in range(options.steps):
        tokens = 128 * lengths.randint(4, 24)
        made = torch.empty(tokens, options.width, dtype=torch.bfloat16, device="cuda")
        start = time.perf_counter()
        kept = [torch.empty_like(made, device="cpu", pin_memory=True) for _ in range(options.layers)]
        waited_now = time.perf_counter() - start
        for place in kept:
            place.copy_(made, non_blocking=True)
        for place in reversed(kept):
            made.copy_(place, non_blocking=True)
        torch.cuda.synchronize()
        mib = sum(place.nbytes for place in kept) / MIB
        print(f"{step:4}  {tokens:6}  {mib:13.0f}  {pins() - before:4}  {waited_now * 1e3:22.1f}")
        before, most, waited = pins(), max(most, mib), waited + waited_now
        del kept
    print(f"waited {waited * 1e3:.1f} ms; pinned {pinned() / most:.2f} times the largest step")


def pins() -> int:
    """How often the driver was asked to pin so far."""
    return torch.cuda.host_memory_stats()["num_host_alloc"]


def pinned() -> float:
    """MiB pinned at most."""
    stats = torch.cuda.host_memory_stats()
    # torch before 2.10 counts them by another name.
    return stats.get("reserved_bytes.peak", stats.get("allocated_bytes.peak", 0)) / MIB


if __name__ == "__main__":
    main()
