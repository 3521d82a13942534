"""Checkpoints of a decoder and its Adam are staged in pinned memory by torch.distributed.checkpoint's BlockingAsyncStager.

A stager for each checkpoint, which is dropped when the checkpoint is written: the memory serves other work between two. The
program trains in between, with its activations on the device.
"""

import torch
import work
from torch.distributed.checkpoint.staging import BlockingAsyncStager

SIZES = (2, 128, 256, 1000) if work.SMALL else (6, 640, 256, 8000)
CHECKPOINTS = 3


def program() -> None:
    layers, width, tokens, vocabulary = SIZES
    model = work.model(layers, width, tokens, vocabulary).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for _ in range(CHECKPOINTS):
        text = torch.randint(vocabulary, (2, tokens + 1)).cuda()
        model(text[:, :-1], text[:, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        staged = BlockingAsyncStager(cache_staged_state_dict=True).stage(state)
        torch.cuda.synchronize()
        del staged


if __name__ == "__main__":
    work.run(program)
