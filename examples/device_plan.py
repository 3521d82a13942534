"""A training whose device memory has a plan: the first run is recorded, and the next one lies in one region.

    python examples/device_plan.py                                  # as stock
    BUDDY_DEVICE_PLAN=device.plan python examples/device_plan.py    # the first run: recorded, and the plan written
    BUDDY_DEVICE_PLAN=device.plan python examples/device_plan.py    # every later run: served from the plan

Batches have several lengths, the same in each epoch, so that PyTorch's allocator cuts its segments differently for each.
"""

import argparse

import torch
from torch import nn

try:
    import pinbuddy
except ImportError:
    pinbuddy = None

MIB = 1 << 20
LENGTHS = [1024, 512, 768, 256, 896, 640]


class Block(nn.Module):
    """Two linear layers around an activation, as most of a transformer's memory is."""

    def __init__(self, width: int):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, hidden):
        return hidden + self.down(nn.functional.gelu(self.up(self.norm(hidden))))


def main() -> None:
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--batch", type=int, default=4)
    options = parser.parse_args()
    model = nn.Sequential(*(Block(options.width) for _ in range(options.layers))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(options.epochs):
        for length in LENGTHS:
            batch = torch.randn(options.batch, length, options.width, device="cuda")
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    requested, reserved = stats["requested_bytes.all.peak"], stats["reserved_bytes.all.peak"]
    print(f"requested at most {requested / MIB:.0f} MiB, reserved {reserved / MIB:.0f} MiB: {requested / reserved:.1%} of it")
    print(served())


def served() -> str:
    """What the plan has done."""
    streams = pinbuddy.stats()["device"] if pinbuddy else None
    if not streams:
        return "no plan yet"
    hits, other = (sum(it[what] for it in streams) for what in ("hits", "unplanned"))
    return f"the plan served {hits} requests, and knew nothing of {other}"


if __name__ == "__main__":
    main()
