"""A dataset that holds pinned tensors, read by workers of a DataLoader that are forked, spawned, and forked by a server."""

import client
import torch
from torch.utils.data import DataLoader, Dataset


class Held(Dataset):
    """One large and one small tensor, both pinned from the beginning. A worker that is no fork has them pickled."""

    def __init__(self):
        self.large = torch.arange(2 << 20, dtype=torch.int64).view(64, -1).pin_memory()
        self.small = torch.arange(64).pin_memory()

    def __len__(self) -> int:
        return 64

    def __getitem__(self, at: int) -> torch.Tensor:
        return self.large[at, :1000] + self.small[at]


def program() -> dict:
    data = {}
    for start in ("fork", "spawn", "forkserver"):
        loader = DataLoader(
            Held(), batch_size=8, num_workers=2, pin_memory=True, multiprocessing_context=start
        )
        data[start] = [client.checksum(batch.to("cuda", non_blocking=True)) for batch in loader]
    return data


if __name__ == "__main__":
    client.run(program)
