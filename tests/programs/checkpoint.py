"""Checkpoints of a decoder and its Adam are staged in pinned memory by torch.distributed.checkpoint's BlockingAsyncStager.

A stager for each checkpoint, which is dropped when the checkpoint is written: the memory serves other work between two. The
program trains in between, with its activations on the device.
"""

from case import decoder, main, scaled


def run(sizes: tuple[int, ...], checkpoints: int = 3) -> None:
    import torch
    from torch.distributed.checkpoint.staging import BlockingAsyncStager

    model, text = decoder(*sizes)
    optimizer = torch.optim.AdamW(model.cuda().parameters(), lr=3e-4)
    for _ in range(checkpoints):
        words = text()
        model(words[:, :-1], words[:, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        staged = BlockingAsyncStager(cache_staged_state_dict=True).stage(state)
        torch.cuda.synchronize()
        del staged


if __name__ == "__main__":
    main(run, sizes=scaled((6, 640, 256, 8000), (2, 128, 256, 1000)))
