"""A plain DataLoader(pin_memory=True): the slowest batch after the first, and a whole epoch."""

import time

import torch
from pinned import on_device
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, count: int):
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> torch.Tensor:
        return torch.full((3, 224, 224), float(at))


def run(images: int, batch: int, workers: int) -> dict[str, float]:
    on_device(1)
    loader = DataLoader(Images(images), batch_size=batch, num_workers=workers, pin_memory=True)
    waits, first = [], 0.0
    start = time.perf_counter()
    asked = start
    for number, images_of_it in enumerate(loader):
        waits.append(time.perf_counter() - asked)
        seen = images_of_it.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        if not images_of_it.is_pinned() or seen.shape[0] != images_of_it.shape[0]:
            raise RuntimeError(f"batch {number} is not as expected: pinned, and {images_of_it.shape[0]} images")
        asked = time.perf_counter()
    first = waits.pop(0)
    return {"first batch": first, "slowest batch after it": max(waits), "all batches": asked - start}
