"""FSDP2 with CPUOffloadPolicy: parameters and gradients in pinned memory, one rank, gloo."""

import tempfile

import client
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard


def program() -> dict:
    with tempfile.NamedTemporaryFile() as store:
        dist.init_process_group(
            "cpu:gloo,cuda:gloo", rank=0, world_size=1, init_method=f"file://{store.name}"
        )
        mesh = init_device_mesh("cuda", (1,))
        model = nn.Sequential(*(nn.Linear(1200, 1200) for _ in range(4)))
        for layer in [*model, model]:
            fully_shard(layer, mesh=mesh, offload_policy=CPUOffloadPolicy(pin_memory=True))
        before = client.checksum([it.to_local() for it in model.parameters()])
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
        for _ in range(3):
            model(torch.rand(64, 1200).to("cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        places = sorted({str(it.device) for it in model.parameters()})
        pinned = all(it.to_local().is_pinned() for it in model.parameters())
        after = client.computed([it.to_local().detach() for it in model.parameters()])
        dist.destroy_process_group()
    return {"before": before, "after": after, "places": " ".join(places), "pinned": pinned}


if __name__ == "__main__":
    client.run(program)
