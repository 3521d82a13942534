"""Programs that use device memory, for the model of PyTorch's allocator (rust-core/replay/src/device).

usage: device_programs.py training|random SEED SNAPSHOT   (in the simulator, with stock PyTorch)

Each writes a snapshot with its whole history. The model replays it, and must reserve what was reserved
(rust-core/replay/tests/real_allocator.rs). The answer is one line of JSON: the most that was reserved, and what is at
the end.
"""

import json
import random
import sys

import torch

MIB = 1 << 20


class Block(torch.nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.queries, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        query, key, value = self.queries(self.norm(x)).chunk(3, dim=-1)
        scores = torch.softmax(query @ key.transpose(-1, -2), dim=-1)
        x = x + self.out(scores @ value)
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def training(seed: int) -> None:
    """AdamW on a small transformer: lengths vary, gradients are copied on another stream, the cache is emptied."""
    draw = random.Random(seed)
    width = 512
    model = torch.nn.Sequential(*(Block(width) for _ in range(6))).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=draw.random() < 0.5)
    side = torch.cuda.Stream()
    for step in range(12):
        batch = torch.randn(draw.randint(1, 8), draw.choice([128, 200, 256, 333, 512]), width).cuda()
        model(batch).square().mean().backward()
        with torch.cuda.stream(side):
            torch.cuda._sleep(3_000_000)
            for parameter in model.parameters():
                parameter.grad.add_(0)
                parameter.grad.record_stream(side)
            kept = torch.empty(draw.randint(1, 40) * MIB, dtype=torch.uint8, device="cuda")
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 5 == 4:
            torch.cuda.empty_cache()
        kept.record_stream(torch.cuda.current_stream())
    del batch, kept


def any_order(seed: int) -> None:
    """Requests of all sizes on three streams, in any order; on a small device some are refused."""
    draw = random.Random(seed)
    streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
    blocks = []
    for _ in range(3000):
        what = draw.random()
        if what < 0.5 and len(blocks) < 60:
            size = int(2 ** draw.uniform(0, 26)) if draw.random() < 0.7 else draw.choice([1, 3, 9, 11]) * MIB
            with torch.cuda.stream(draw.choice(streams)):
                try:
                    blocks.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
                except torch.cuda.OutOfMemoryError:
                    pass
        elif what < 0.9 and blocks:
            block = blocks.pop(draw.randrange(len(blocks)))
            if draw.random() < 0.3:
                stream = draw.choice(streams)
                with torch.cuda.stream(stream):
                    torch.cuda._sleep(draw.randint(0, 2_000_000))
                block.record_stream(stream)
            del block
        elif what < 0.905:
            torch.cuda.empty_cache()


def main(name: str, seed: str, path: str) -> None:
    torch.cuda.memory._record_memory_history(context=None, stacks="python", max_entries=1 << 20)
    {"training": training, "random": any_order}[name](int(seed))
    stats = torch.cuda.memory_stats()
    torch.cuda.memory._dump_snapshot(path)
    print(json.dumps([stats[f"reserved_bytes.all.{which}"] for which in ("peak", "current")]))


if __name__ == "__main__":
    main(*sys.argv[1:])
