"""Allocate and free while streams are busy, each with a freed block whose copy is still queued."""

import torch
from pinned import Requests, on_device, pair_cost


def run(streams: list[int], cycles: int, pairs: int) -> dict[str, float]:
    device, figures = on_device(8), {}
    requests = Requests()
    # Cache everything before any stream is busy, since a pin may wait for them.
    kept = [requests.pinned(8) for _ in range(max(streams) + 1)] + [requests.pinned(16)]
    kept.clear()
    for count in streams:
        for stream in [torch.cuda.Stream() for _ in range(count)]:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(cycles)
                device.copy_(requests.pinned(8), non_blocking=True)
        figures[f"a pair beside {count} busy"] = pair_cost(16, pairs)
        torch.cuda.synchronize()
    return figures
