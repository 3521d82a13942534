"""A cold start with large requests, none of them a power of two, and then the same requests again."""

import time

from pinned import Requests, on_device


def run(mib: float, blocks: int) -> dict[str, float]:
    on_device(1)
    requests = Requests()
    kept = [requests.pinned(mib) for _ in range(blocks)]
    kept.clear()
    start = time.perf_counter()
    kept = [requests.pinned(mib) for _ in range(blocks)]
    again = time.perf_counter() - start
    cold = Requests()
    cold.seconds = requests.seconds[:blocks]
    return cold.figures() | {"the same once more": again}
