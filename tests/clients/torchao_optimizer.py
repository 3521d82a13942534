"""torchao's CPUOffloadOptimizer: parameters and gradients in pinned memory, the optimizer's steps on the processor.

Gradients are copied to the GPU from known values, so that each step can be compared without working kernels.
"""

import client
import torch
from torch import nn
from torchao.optim import CPUOffloadOptimizer


def program() -> dict:
    layers = [nn.Linear(1300, 1300 + 100 * at).to("cuda") for at in range(4)]
    parameters = [it for layer in layers for it in layer.parameters()]
    optimizer = CPUOffloadOptimizer(
        parameters, torch.optim.AdamW, offload_gradients=False, lr=0.01
    )
    steps = []
    for _ in range(3):
        gradients = [torch.rand(it.shape).to("cuda") for it in parameters]
        torch.autograd.backward(parameters, gradients)
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        steps.append(client.checksum(parameters))
    return {"steps": steps, "state": len(optimizer.state_dict())}


if __name__ == "__main__":
    client.run(program)
