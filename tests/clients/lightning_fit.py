"""lightning's Trainer with a pinned DataLoader that has workers; batches are checked in the training step."""

import logging

import client
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    """A layer that records its inputs."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(20_000, 64)
        self.seen = []

    def training_step(self, batch, index: int) -> torch.Tensor:
        rows, numbers = batch
        self.seen.append([str(rows.device), client.checksum([rows, numbers])])
        return self.layer(rows).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def program() -> dict:
    logging.getLogger("lightning").setLevel(logging.WARNING)
    lightning.seed_everything(0, verbose=False)
    data = TensorDataset(torch.rand(320, 20_000), torch.arange(320))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, pin_memory=True)
    model = Model()
    trainer = lightning.Trainer(
        accelerator="gpu",
        devices=1,
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    weights = client.computed([it.detach() for it in model.parameters()])
    return {"steps": trainer.global_step, "seen": model.seen, "weights": weights}


if __name__ == "__main__":
    client.run(program)
