"""A peak, as by a checkpoint, that is freed and returned; the program continues with one small block."""

import time

from pinned import Requests, bytes_pinned, give_back, on_device


def run(mib: int, blocks: int, pause: float) -> dict[str, float]:
    on_device(1)
    requests = Requests()
    peak = [requests.pinned(mib) for _ in range(blocks)]
    peak.clear()
    gave = give_back()
    after = Requests()
    kept = after.pinned(8)
    time.sleep(pause)
    return {
        "the peak": sum(requests.seconds),
        "giving it back": gave,
        "one block of 8 MiB": sum(after.seconds),
        "pinned a while later, over live": bytes_pinned() / kept.numel(),
    }
