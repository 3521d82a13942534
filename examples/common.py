"""What the examples share: ranks and their GPUs, a small language model, its data, a report at the end.

Works with the fork, with the plug-in and with stock PyTorch: pinbuddy is asked for its figures only, and
only where it can be imported.
"""

import argparse
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

try:
    import pinbuddy
except ImportError:
    pinbuddy = None

MIB = 1 << 20


def arguments(what: str) -> argparse.Namespace:
    """The command line, which is the same for every example."""
    parser = argparse.ArgumentParser(
        description=what, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20, help="optimizer steps")
    parser.add_argument("--batch", type=int, default=8, help="sequences for each rank and step")
    parser.add_argument("--tokens", type=int, default=1024, help="tokens of a sequence")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=1024, help="a multiple of 64")
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument(
        "--backend",
        choices=["auto", "nccl", "gloo"],
        default="auto",
        help="how GPUs talk; auto: NCCL where each rank has a GPU of its own",
    )
    return parser.parse_args()


@dataclass
class Rank:
    """This process among those that torchrun started."""

    number: int
    ranks: int
    device: torch.device
    backend: str


@contextmanager
def rank_of_torchrun(backend: str) -> Iterator[Rank]:
    """Joins the others for as long as the body runs; ranks share GPUs where there are too few."""
    local, locals_ = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    gpus = torch.cuda.device_count()
    if backend == "auto":
        backend = "nccl" if gpus >= locals_ else "gloo"
    device = torch.device("cuda", local % gpus)
    torch.cuda.set_device(device)
    # What lies in host memory (parameters that FSDP offloads, reports) is gloo's in any case.
    dist.init_process_group(f"cpu:gloo,cuda:{backend}")
    try:
        yield Rank(dist.get_rank(), dist.get_world_size(), device, backend)
    finally:
        dist.destroy_process_group()


class Block(nn.Module):
    """A layer of a transformer: attention, then two linear layers, each beside a shortcut."""

    def __init__(self, width: int):
        super().__init__()
        self.heads = width // 64
        self.before_attention, self.before_linear = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.mix(self.attention(self.before_attention(x)))
        return x + self.narrow(functional.gelu(self.widen(self.before_linear(x))))

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        parts = self.query_key_value(x).view(batch, tokens, 3, self.heads, 64)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        # cuDNN's attention is not among these: the simulator has no cuDNN.
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, tokens, width)


class Model(nn.Module):
    """A decoder that predicts the next token."""

    def __init__(self, options: argparse.Namespace):
        super().__init__()
        self.token = nn.Embedding(options.vocabulary, options.width)
        self.place = nn.Parameter(torch.zeros(options.tokens, options.width))
        self.blocks = nn.ModuleList(Block(options.width) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.width)
        self.out = nn.Linear(options.width, options.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The mean loss."""
        x = self.token(tokens) + self.place
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.out(self.norm(x)).flatten(0, 1), targets.flatten())


class Text(Dataset):
    """Sequences of random tokens, in place of text; each its own, whoever asks for it."""

    def __init__(self, options: argparse.Namespace, sequences: int):
        self.vocabulary, self.tokens, self.sequences = (
            options.vocabulary,
            options.tokens,
            sequences,
        )

    def __len__(self) -> int:
        return self.sequences

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(index)
        text = torch.randint(self.vocabulary, (self.tokens + 1,), generator=generator)
        return text[:-1], text[1:]


def batches(options: argparse.Namespace, rank: Rank) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """This rank's part of the data, on its GPU: made by a worker, pinned, copied while the GPU works."""
    data = Text(options, options.steps * options.batch * rank.ranks)
    loader = DataLoader(
        data,
        batch_size=options.batch,
        sampler=DistributedSampler(data, rank.ranks, rank.number),
        num_workers=1,
        pin_memory=True,
    )
    for tokens, targets in loader:
        yield (
            tokens.to(rank.device, non_blocking=True),
            targets.to(rank.device, non_blocking=True),
        )


@dataclass
class Report:
    """Step times, and what pinned memory did meanwhile; rank 0 prints it for all."""

    what: str
    rank: Rank
    seconds: list[float] = field(default_factory=list)
    # How often memory had been pinned when a step ended: by the driver, whoever asked it to.
    pins: list[int] = field(default_factory=list)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Times a step to its end on the GPU."""
        start = time.perf_counter()
        yield
        torch.cuda.synchronize()
        self.seconds.append(time.perf_counter() - start)
        self.pins.append(torch.cuda.host_memory_stats()["num_host_alloc"])

    def print(self) -> None:
        """One line a rank, then what pinbuddy says of rank 0."""
        lines: list = [None] * self.rank.ranks
        dist.all_gather_object(lines, self.line())
        if self.rank.number != 0:
            return
        print(f"{self.what}: {self.rank.ranks} ranks, {self.rank.backend}, {len(self.seconds)} steps")
        print("rank  first step  later steps  pins by then  pins later  pinned at most")
        print("\n".join(lines))
        if pinbuddy is None:
            print("Stock PyTorch: pinbuddy is not installed.")
        else:
            print(pinbuddy.memory_summary())

    def line(self) -> str:
        first, *later = self.seconds
        median = f"{statistics.median(later):.3f} s" if later else "-"
        stats = torch.cuda.host_memory_stats()
        # torch before 2.10 counts what is pinned by another name.
        most = stats.get("reserved_bytes.peak", stats.get("allocated_bytes.peak", 0))
        return (
            f"{self.rank.number:4}  {first:8.3f} s  {median:>11}  {self.pins[0]:12}  "
            f"{self.pins[-1] - self.pins[0]:10}  {most / MIB:10.1f} MiB"
        )
