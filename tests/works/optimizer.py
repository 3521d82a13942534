"""FSDP2 with CPUOffloadPolicy: parameters and gradients lie in pinned memory, Adam runs on the host. One rank, gloo."""

import tempfile

import torch
import torch.distributed as dist
import work
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

SIZES = (2, 128, 256, 1000) if work.SMALL else (6, 768, 256, 8000)
STEPS = 3 if work.SMALL else 4


def program() -> None:
    with tempfile.NamedTemporaryFile() as store:
        dist.init_process_group("cpu:gloo,cuda:gloo", rank=0, world_size=1, init_method=f"file://{store.name}")
        how = {"mesh": init_device_mesh("cuda", (1,)), "offload_policy": CPUOffloadPolicy(pin_memory=True)}
        layers, width, tokens, vocabulary = SIZES
        model = work.model(layers, width, tokens, vocabulary)
        for block in model.blocks:
            fully_shard(block, **how)
        fully_shard(model, **how)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
        for _ in range(STEPS):
            text = torch.randint(vocabulary, (2, tokens + 1)).cuda()
            model(text[:, :-1], text[:, 1:]).backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()
        dist.destroy_process_group()


if __name__ == "__main__":
    work.run(program)
