"""accelerate's cpu_offload, which copies weights to the GPU layer by layer, and a DataLoader prepared by
Accelerator."""

import accelerate
import client
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def program() -> dict:
    model = nn.Sequential(*(nn.Linear(1500, 1500) for _ in range(4)))
    weights = {name: it.pin_memory() for name, it in model.state_dict().items()}
    before = client.checksum(weights)
    accelerate.cpu_offload(model, execution_device=0, offload_buffers=True, state_dict=weights)
    accelerator = accelerate.Accelerator()
    data = TensorDataset(torch.rand(96, 1500), torch.arange(96))
    loader = accelerator.prepare(DataLoader(data, batch_size=32, pin_memory=True))
    seen, outputs = [], []
    with torch.no_grad():
        for rows, numbers in loader:
            seen.append([str(rows.device), client.checksum([rows, numbers])])
            outputs.append(model(rows))
    places = sorted({str(it.device) for it in model.parameters()})
    after = client.checksum(weights)
    results = {"seen": seen, "outputs": client.computed(outputs), "places": " ".join(places)}
    return results | {"before": before, "after": after}


if __name__ == "__main__":
    client.run(program)
