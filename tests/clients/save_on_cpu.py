"""torch.autograd.graph.save_on_cpu(pin_memory=True): activations are copied to pinned memory, and back for the
backward pass.

Their bytes are checked in the backward pass, so that a block reused too early is detected.
"""

import client
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu


class Scaled(torch.autograd.Function):
    """Saves its input, and reports what it was in the backward pass."""

    came_back: list = []

    @staticmethod
    def forward(context, x: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(data)
        return x * 2

    @staticmethod
    def backward(context, gradient: torch.Tensor):
        (data,) = context.saved_tensors
        Scaled.came_back.append(client.checksum(data))
        return gradient * 2, None


def program() -> dict:
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4))).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(3):
        x = torch.rand(512 + 77 * step, 1024).to("cuda")
        with save_on_cpu(pin_memory=True):
            for layer in model:
                data = torch.rand(x.shape).to("cuda")
                x = Scaled.apply(layer(x).relu(), data)
        x.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return {"came back": Scaled.came_back, "model": client.computed(list(model.parameters()))}


if __name__ == "__main__":
    client.run(program)
