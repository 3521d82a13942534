"""DistributedDataParallel with activations offloaded to pinned memory.

    torchrun --nproc-per-node=2 examples/ddp.py

Each rank has the whole model on its GPU. What a block's backward pass needs of its forward pass waits in
pinned memory meanwhile: every step asks for the same sizes in the same order, which is what pinbuddy
serves from memory that was pinned before.
"""

import torch
from common import Model, Report, arguments, batches, rank_of_torchrun
from torch.autograd.graph import save_on_cpu
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    options = arguments("DDP with activations offloaded to pinned memory.")
    with rank_of_torchrun(options.backend) as rank:
        torch.manual_seed(0)
        model = DistributedDataParallel(Model(options).to(rank.device))
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        report = Report("DDP", rank)
        for tokens, targets in batches(options, rank):
            with report.step():
                with save_on_cpu(pin_memory=True), torch.autocast("cuda", torch.bfloat16):
                    loss = model(tokens, targets)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        report.print()


if __name__ == "__main__":
    main()
