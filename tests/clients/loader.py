"""DataLoader(pin_memory=True) with workers by fork, spawn or forkserver, for one epoch or with workers that stay.

usage: loader.py fork|spawn|forkserver|persistent
"""

import sys

import client
import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    """A tensor, a number, and a pair within a tuple, as in datasets."""

    def __len__(self) -> int:
        return 60

    def __getitem__(self, at: int) -> dict:
        generator = torch.Generator().manual_seed(at)
        image = torch.rand(3, 224, 224, generator=generator)
        return {"image": image, "label": at, "more": (torch.tensor([at, at + 1]), f"name {at}")}


def program() -> dict:
    way = sys.argv[1]
    persistent = way == "persistent"
    loader = DataLoader(
        Samples(),
        batch_size=8,
        num_workers=2,
        pin_memory=True,
        shuffle=True,
        persistent_workers=persistent,
        multiprocessing_context="fork" if persistent else way,
    )
    seen, pinned, batches = [], 0, 0
    for _ in range(2 if persistent else 1):
        for batch in loader:
            pinned += batch["image"].is_pinned() and batch["more"][0].is_pinned()
            on_device = batch["image"].to("cuda", non_blocking=True)
            back = client.pinned(*on_device.shape).copy_(on_device, non_blocking=True)
            torch.cuda.current_stream().synchronize()
            seen.append(client.checksum([batch["image"], back, batch["label"], batch["more"][1]]))
            batches += 1
    return {"batches": batches, "pinned": pinned, "data": seen}


if __name__ == "__main__":
    client.run(program)
