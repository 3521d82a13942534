"""FSDP2 with CPUOffloadPolicy: parameters and gradients lie in pinned memory, Adam runs on the host. One rank, gloo."""

import tempfile

from case import decoder, main, scaled


def run(sizes: tuple[int, ...], steps: int) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

    with tempfile.NamedTemporaryFile() as store:
        dist.init_process_group("cpu:gloo,cuda:gloo", rank=0, world_size=1, init_method=f"file://{store.name}")
        how = {"mesh": init_device_mesh("cuda", (1,)), "offload_policy": CPUOffloadPolicy(pin_memory=True)}
        model, text = decoder(*sizes)
        for block in model.blocks:
            fully_shard(block, **how)
        fully_shard(model, **how)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
        for _ in range(steps):
            words = text()
            model(words[:, :-1], words[:, 1:]).backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()
        dist.destroy_process_group()


if __name__ == "__main__":
    main(run, sizes=scaled((6, 768, 256, 8000), (2, 128, 256, 1000)), steps=scaled(4, 3))
