"""Trainings as users write them, for plans of device memory and the model of PyTorch's allocator: plain torch, no trick.

usage: device_trainings.py NAME [SNAPSHOT]

Runs the training, and writes a snapshot with its whole history if a file is named. The answer is one line of JSON: the most
that was reserved, reserved at the end, and the most that was requested at once. In the simulator kernels compute nothing, and
memory that nobody copies to takes no room: so models have their real sizes (`cargo xtask bench --only trainings`).
"""

import json
import math
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

STEPS = 8


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        split = self.all(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        x = functional.softmax(scores, dim=-1) @ value
        return self.out(x.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.before_attention, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    """GPT-2 small: 12 layers of 768, 50257 tokens."""

    def __init__(self, recomputes: bool, width: int = 768, layers: int = 12, heads: int = 12, tokens: int = 50257):
        super().__init__()
        self.recomputes = recomputes
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(1024, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recomputes else layer(x)
        return self.head(self.norm(x))


class Bottleneck(nn.Module):
    def __init__(self, channels: int, inner: int, stride: int):
        super().__init__()

        def step(first, last, size, stride=1):
            return nn.Conv2d(first, last, size, stride, size // 2, bias=False), nn.BatchNorm2d(last)

        self.inside = nn.Sequential(
            *step(channels, inner, 1), nn.ReLU(inplace=True),
            *step(inner, inner, 3, stride), nn.ReLU(inplace=True),
            *step(inner, 4 * inner, 1),
        )
        same = channels == 4 * inner and stride == 1
        self.beside = nn.Identity() if same else nn.Sequential(*step(channels, 4 * inner, 1, stride))

    def forward(self, x):
        return functional.relu(self.inside(x) + self.beside(x), inplace=True)


def resnet() -> nn.Module:
    """ResNet-50."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for inner, count, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for at in range(count):
            layers.append(Bottleneck(channels, inner, stride if at == 0 else 1))
            channels = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def language(recomputes: bool, batch: int, optimizer: str, accumulated: int = 1) -> None:
    model = GPT(recomputes)
    adam = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, foreach=optimizer == "foreach")
    for _ in range(STEPS):
        for _ in range(accumulated):
            tokens = torch.zeros(batch, 1025, dtype=torch.long, device="cuda")
            logits = model(tokens[:, :-1])
            loss = functional.cross_entropy(logits.view(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))
            (loss / accumulated).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=optimizer == "foreach")
        adam.step()
        adam.zero_grad(set_to_none=True)


def images(batch: int) -> None:
    # The simulator has no cuDNN.
    torch.backends.cudnn.enabled = False
    model = resnet()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    for _ in range(STEPS):
        pictures = torch.zeros(batch, 3, 224, 224, device="cuda")
        labels = torch.zeros(batch, dtype=torch.long, device="cuda")
        functional.cross_entropy(model(pictures), labels).backward()
        sgd.step()
        sgd.zero_grad(set_to_none=True)


TRAININGS = {
    "gpt2": lambda: language(False, 4, "foreach"),
    "gpt2-for-each": lambda: language(False, 4, "for-each"),
    "gpt2-recompute": lambda: language(True, 16, "foreach"),
    "gpt2-accumulated": lambda: language(True, 4, "for-each", accumulated=4),
    "resnet50": lambda: images(32),
    "resnet50-large": lambda: images(128),
}


def main(name: str, path: str = "") -> None:
    if path:
        torch.cuda.memory._record_memory_history(context=None, stacks="python", max_entries=1 << 22)
    torch.set_default_device("cuda")
    TRAININGS[name]()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    if path:
        torch.cuda.memory._dump_snapshot(path)
    names = ("reserved_bytes.all.peak", "reserved_bytes.all.current", "requested_bytes.all.peak")
    print(json.dumps([stats[name] for name in names]))


if __name__ == "__main__":
    main(*sys.argv[1:])
