"""Copies between pinned memory and the GPU; see measure_bandwidth.py."""

import time

import torch

_blocks: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}


def _blocks_of(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """On the host and on the device, the same ones each time."""
    if size not in _blocks:
        host = torch.empty(size, dtype=torch.uint8, pin_memory=True).fill_(1)
        _blocks[size] = host, torch.empty(size, dtype=torch.uint8, device="cuda")
    return _blocks[size]


def is_engines(size: int) -> bool:
    """Whether the host's block is a part of the engine's memory."""
    from program import of_engine

    return of_engine(_blocks_of(size)[0])


def gb_per_s(direction: str, size: int, copies: int) -> float:
    """`count` consecutive copies on a stream, `h2d` or `d2h`."""
    host, device = _blocks_of(size)
    to, source = (device, host) if direction == "h2d" else (host, device)
    to.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(copies):
        to.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    return copies * size / (time.perf_counter() - start) / 1e9
