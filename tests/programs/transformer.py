"""A transformer language model with activations offloaded by PyTorch's `save_on_cpu(pin_memory=True)`. About 1
billion parameters in 20 layers of 2048."""

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Attention and two linear layers, normed before."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.mixed(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.joined(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


class Model(nn.Module):
    """Maps tokens to the logits of the next token."""

    def __init__(self, words: int, width: int, heads: int, layers: int):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, words):
        hidden = self.norm(self.blocks(self.embedding(words)))
        return functional.linear(hidden, self.embedding.weight)


def make(words: int, width: int, heads: int, layers: int, batch: int, length: int):
    """A function that trains for a step and returns its loss."""
    # Flash attention, for the same kernels on every release.
    torch.backends.cuda.enable_cudnn_sdp(False)
    with torch.device("cuda"):
        model = Model(words, width, heads, layers).to(torch.bfloat16)
        text = torch.randint(words, (batch, length + 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> float:
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            logits = model(text[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1).float(), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    return step
