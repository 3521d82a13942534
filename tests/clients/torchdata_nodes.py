"""torchdata: a pipeline of nodes with a pinning one, and a StatefulDataLoader that is stopped and resumed."""

import gc

import client
import torch
from torchdata.nodes import Batcher, IterableWrapper, Loader, ParallelMapper, PinMemory, Prefetcher
from torchdata.stateful_dataloader import StatefulDataLoader


def sample(at: int) -> torch.Tensor:
    return torch.rand(200_000, generator=torch.Generator().manual_seed(at))


class Samples(torch.utils.data.Dataset):
    """The same, by number."""

    def __len__(self) -> int:
        return 48

    def __getitem__(self, at: int) -> torch.Tensor:
        return sample(at)


def of(batch) -> list:
    batch = torch.stack(batch) if isinstance(batch, list) else batch
    return [batch.is_pinned(), client.checksum(batch.to("cuda", non_blocking=True))]


def program() -> dict:
    settings = {"batch_size": 8, "num_workers": 2, "pin_memory": True}
    loader = StatefulDataLoader(Samples(), **settings)
    batches = iter(loader)
    before = [of(next(batches)) for _ in range(3)]
    state = loader.state_dict()
    rest = [of(batch) for batch in batches]
    # So that no thread holds a batch when the next workers fork.
    del batches, loader
    gc.collect()
    resumed = StatefulDataLoader(Samples(), **settings)
    resumed.load_state_dict(state)
    again = [of(batch) for batch in resumed]
    node = ParallelMapper(IterableWrapper(range(48)), sample, num_workers=2, method="thread")
    node = ParallelMapper(Batcher(node, batch_size=8), torch.stack, num_workers=1, method="thread")
    nodes = [of(batch) for batch in Loader(Prefetcher(PinMemory(node), prefetch_factor=2))]
    return {"nodes": nodes, "before": before, "rest": rest, "taken up again": again == rest}


if __name__ == "__main__":
    client.run(program)
