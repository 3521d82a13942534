"""Activations of a decoder wait in pinned memory between forward and backward: save_on_cpu, bfloat16 by autocast, plain SGD."""

from case import decoder, main, scaled


def run(sizes: tuple[int, ...], steps: int) -> None:
    import torch
    from torch.autograd.graph import save_on_cpu

    model, text = decoder(*sizes)
    optimizer = torch.optim.SGD(model.cuda().parameters(), lr=0.01)
    for _ in range(steps):
        words = text()
        with save_on_cpu(pin_memory=True), torch.autocast("cuda", torch.bfloat16):
            loss = model(words[:, :-1], words[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main(run, sizes=scaled((6, 768, 1024, 8000), (2, 128, 256, 1000)), steps=scaled(6, 3))
