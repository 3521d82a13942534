"""A plain DataLoader(pin_memory=True) of images with two workers: two epochs, and the slowest batch.

Its pinned memory is small, and memory is pinned ahead while it waits for batches.
"""

import time

from case import LOCKED, finish, scaled, start

torch = start(LOCKED)


class Images(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return scaled(1600, 640)

    def __getitem__(self, index: int):
        image = torch.full((3, 224, 224), float(index))
        for _ in range(3):
            image = image + 0.0  # as decoding and cropping would
        return image, index


loader = torch.utils.data.DataLoader(Images(), batch_size=32, num_workers=2, pin_memory=True)
waits = []
begin = time.perf_counter()
for _ in range(2):
    last, epoch = time.perf_counter(), []
    for images, _ in loader:
        epoch.append(time.perf_counter() - last)
        images.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        last = time.perf_counter()
    # The first two wait for the workers to start.
    waits += epoch[2:]
finish(seconds=time.perf_counter() - begin, slowest=max(waits))
