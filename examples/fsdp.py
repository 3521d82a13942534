"""FSDP2 with parameters and gradients offloaded to pinned memory.

    torchrun --nproc-per-node=2 examples/fsdp.py

Each rank keeps its part of the model in pinned memory. A block's parameters come to the GPU when it is
their turn and its gradients go back. The optimizer runs on the processor; its states are in ordinary memory.
"""

import torch
from common import Model, Report, arguments, batches, rank_of_torchrun
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard


def main() -> None:
    options = arguments("FSDP2 with parameters and gradients in pinned memory.")
    with rank_of_torchrun(options.backend) as rank:
        torch.manual_seed(0)
        model = Model(options)
        how = {
            "mesh": init_device_mesh("cuda", (rank.ranks,)),
            "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16),
            "offload_policy": CPUOffloadPolicy(pin_memory=True),
        }
        for block in model.blocks:
            fully_shard(block, **how)
        fully_shard(model, **how)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        report = Report("FSDP2", rank)
        for tokens, targets in batches(options, rank):
            with report.step():
                loss = model(tokens, targets)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        report.print()


if __name__ == "__main__":
    main()
