"""Activations of a decoder wait in pinned memory for the backward pass: torch.autograd.graph.save_on_cpu(pin_memory=True)."""

import torch
import work
from torch.autograd.graph import save_on_cpu

SIZES = (2, 128, 256, 1000) if work.SMALL else (6, 768, 1024, 8000)
STEPS = 3 if work.SMALL else 6


def program() -> None:
    layers, width, tokens, vocabulary = SIZES
    model = work.model(layers, width, tokens, vocabulary).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        text = torch.randint(vocabulary, (2, tokens + 1)).cuda()
        with save_on_cpu(pin_memory=True), torch.autocast("cuda", torch.bfloat16):
            loss = model(text[:, :-1], text[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()


if __name__ == "__main__":
    work.run(program)
