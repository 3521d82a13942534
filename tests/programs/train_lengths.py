"""A training step on batches of several lengths, with the device memory that it takes."""

import time

import torch
from torch.nn import functional
from transformer import Model


def make(words: int, width: int, heads: int, layers: int, batch: int):
    """A function that trains for a step on sequences of some length."""
    torch.manual_seed(7)
    # Flash attention, for the same kernels on every release.
    torch.backends.cuda.enable_cudnn_sdp(False)
    with torch.device("cuda"):
        model = Model(words, width, heads, layers).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step(length: int) -> None:
        text = torch.randint(words, (batch, length + 1), device="cuda")
        logits = model(text[:, :-1])
        functional.cross_entropy(logits.flatten(0, 1).float(), text[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step, sum(it.numel() for it in model.parameters())


def train(which: str, lengths: list[int], epochs: int, **sizes: int) -> dict:
    """Lengths of the batches of an epoch, in their order; what was measured."""
    step, parameters = make(**sizes)
    seconds = []
    for epoch in range(epochs):
        for length in lengths:
            torch.cuda.synchronize()
            start = time.perf_counter()
            step(length)
            torch.cuda.synchronize()
            if epoch:
                seconds.append(time.perf_counter() - start)
    stats = torch.cuda.memory_stats()
    device = None
    if which == "ours":
        import pinbuddy

        device = pinbuddy.stats()["device"]
    return {
        "parameters": parameters,
        "step_s": sum(seconds) / len(seconds),
        "requested": stats["requested_bytes.all.peak"],
        "reserved": stats["reserved_bytes.all.peak"],
        "retries": stats["num_alloc_retries"],
        "streams": device,
    }
