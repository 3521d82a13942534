"""A plain DataLoader(pin_memory=True) of images: the whole of it, the first batch, and the slowest later one.

Its pinned memory is small, and memory is pinned ahead while it waits for batches.
"""

import time

from case import LOCKED, main, scaled, word


class Images:
    """As torchvision's transforms leave them: floats, after `passes` over them, as decoding and cropping would."""

    def __init__(self, count: int, passes: int):
        self.count, self.passes = count, passes

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        import torch

        image = torch.full((3, 224, 224), float(index))
        for _ in range(self.passes):
            image = image + 0.0
        return image, index


def run(images: int, batch: int = 32, workers: int = 2, epochs: int = 2, passes: int = 3) -> dict[str, float]:
    import torch
    from torch.utils.data import DataLoader

    options = {"batch_size": batch, "num_workers": workers, "pin_memory": True}
    loader = DataLoader(Images(images, passes), shuffle=True, **options)
    firsts, waits = [], []
    begin = time.perf_counter()
    for _ in range(epochs):
        last, epoch = time.perf_counter(), []
        for pictures, labels in loader:
            epoch.append(time.perf_counter() - last)
            if not pictures.is_pinned() or len(pictures) != len(labels):
                raise RuntimeError(f"a batch of {len(pictures)} images and {len(labels)} labels, or it is not pinned")
            arrived, labels = pictures.to("cuda", non_blocking=True), labels.to("cuda", non_blocking=True)
            arrived.mul_(2)
            torch.cuda.synchronize()
            last = time.perf_counter()
        firsts.append(epoch[0])
        # The first two wait for the workers to start.
        waits += epoch[2:]
    return {"seconds": time.perf_counter() - begin, "first": firsts[0], "slowest": max(waits)}


if __name__ == "__main__":
    if word(0, "bench") == "works":
        main(run, images=scaled(1000, 200), batch=64, passes=0)
    else:
        main(run, LOCKED, images=scaled(1600, 640))
