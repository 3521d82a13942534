"""DataLoader(pin_memory=True) with two workers: images in batches of 64, two epochs, the last batch of each smaller."""

import torch
import work
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """As torchvision's transforms leave them: floats."""

    def __len__(self) -> int:
        return 200 if work.SMALL else 1000

    def __getitem__(self, at: int) -> tuple[torch.Tensor, int]:
        return torch.full((3, 224, 224), float(at)), at


def program() -> None:
    loader = DataLoader(Images(), batch_size=64, shuffle=True, num_workers=2, pin_memory=True)
    for _ in range(2):
        for images, labels in loader:
            images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
            images.mul_(2)
            torch.cuda.synchronize()


if __name__ == "__main__":
    work.run(program)
