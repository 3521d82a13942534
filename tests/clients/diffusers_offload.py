"""diffusers' group offload, by leaves and by blocks, with a stream: each group's pinned weights are copied to the
GPU while the previous group computes."""

import client
import torch
from diffusers.hooks import apply_group_offloading
from torch import nn


class Blocks(nn.Module):
    """Layers in a list, as in transformers."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(1100, 1100) for _ in range(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def program() -> dict:
    results = {}
    for kind in ("leaf_level", "block_level"):
        model = Blocks().eval()
        before = client.checksum(model.state_dict())
        apply_group_offloading(
            model,
            onload_device=torch.device("cuda"),
            offload_device=torch.device("cpu"),
            offload_type=kind,
            num_blocks_per_group=None if kind == "leaf_level" else 2,
            use_stream=True,
        )
        with torch.no_grad():
            outputs = [model(torch.rand(64, 1100).to("cuda")) for _ in range(3)]
        torch.cuda.synchronize()
        results[f"{kind}, outputs"] = client.computed(outputs)
        results[f"{kind}, places"] = " ".join(sorted({str(it.device) for it in model.parameters()}))
        results[f"{kind}, kept"] = client.checksum(model.state_dict()) == before
    return results


if __name__ == "__main__":
    client.run(program)
