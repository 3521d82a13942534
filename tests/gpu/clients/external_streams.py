"""Streams of another library that use a block and are destroyed; and the cost of a pair afterwards."""

import ctypes

import torch
from pinned import Requests, on_device, pair_cost


def created() -> int:
    handle = ctypes.c_void_p()
    _check(torch.cuda.cudart().cudaStreamCreate(ctypes.addressof(handle)))
    return handle.value


def _check(status) -> None:
    if int(status):
        raise RuntimeError(f"a call for a stream returned {status}")


def run(streams: int, pairs: int) -> dict[str, float]:
    device, requests = on_device(8), Requests()
    requests.pinned(8)
    before = pair_cost(8, pairs)
    requests.seconds.clear()
    for _ in range(streams):
        handle = created()
        stream = torch.cuda.ExternalStream(handle)
        with torch.cuda.stream(stream):
            device.copy_(requests.pinned(8), non_blocking=True)
        stream.synchronize()
        # The request makes the allocator notice that the copy is finished.
        requests.pinned(8)
        _check(torch.cuda.cudart().cudaStreamDestroy(handle))
    return {"a pair before": before, "a pair after": pair_cost(8, pairs)} | requests.figures()
