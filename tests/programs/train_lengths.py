"""A training step on batches of several lengths, with the device memory that it takes: `train_lengths.py JSON ours|stock`.

JSON has the model's sizes, `batch`, `lengths` (of the batches of an epoch, in their order) and `epochs`. Prints what
was measured as the last line. A process of its own, which ends as programs do: a recorded run writes its plan then.
"""

import json
import sys
import time

import torch
from torch.nn import functional
from transformer import Model
from worker import require


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


def main(sizes: dict, which: str) -> None:
    torch.cuda.init()
    require(which)
    lengths, epochs = sizes.pop("lengths"), sizes.pop("epochs")
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
    answer = {
        "parameters": parameters,
        "step_s": sum(seconds) / len(seconds),
        "requested": stats["requested_bytes.all.peak"],
        "reserved": stats["reserved_bytes.all.peak"],
        "retries": stats["num_alloc_retries"],
        "streams": device,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
