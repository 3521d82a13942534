"""An optimizer step as in ZeRO-Offload: gradients are copied to pinned memory, Adam runs on the host in single
precision, and the new parameters are copied back. Every buffer is allocated again in each step."""

import math

import torch


def shapes(width: int, layers: int) -> list[tuple[int, ...]]:
    """Those of a transformer's layers."""
    layer = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width), (width,), (4 * width,)]
    return layers * layer


def pinned(shape) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.bfloat16, pin_memory=True)


def make(width: int, layers: int):
    """A function that does a step and returns the sum of the first parameter, as the device has it."""
    parameters, gradients, masters = [], [], []
    for shape in shapes(width, layers):
        # Random numbers for so many would take the host longer than ten steps.
        on_host = torch.linspace(-0.02, 0.02, math.prod(shape)).view(shape)
        parameters.append(on_host.to("cuda", torch.bfloat16))
        gradients.append((on_host * 0.05).to("cuda", torch.bfloat16))
        masters.append(torch.nn.Parameter(on_host))
    adam = torch.optim.AdamW(masters, lr=1e-3, fused=True)

    def step() -> float:
        arrived = []
        for gradient in gradients:
            arrived.append(pinned(gradient.shape))
            arrived[-1].copy_(gradient, non_blocking=True)
        torch.cuda.synchronize()
        for master, gradient in zip(masters, arrived):
            master.grad = gradient.float()
        del arrived
        adam.step()
        for parameter, master in zip(parameters, masters):
            leaving = pinned(parameter.shape)
            leaving.copy_(master.detach())
            parameter.copy_(leaving, non_blocking=True)
        return float(parameters[0].cpu().double().sum())

    return step
