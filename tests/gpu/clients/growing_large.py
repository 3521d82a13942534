"""A large buffer that grows by a little: the new one is allocated before the old one is freed, or after."""

from pinned import MIB, Requests, bytes_pinned, on_device


def run(start_mib: int, steps: int, old_first: bool) -> dict[str, float]:
    on_device(1)
    requests = Requests()
    size = start_mib
    buffer = requests.pinned(size)
    for _ in range(steps):
        size += 1
        if old_first:
            buffer = None
        buffer = requests.pinned(size)
    live = buffer.numel() + (0 if old_first else (size - 1) * MIB)
    return requests.figures() | {"pinned at most, over live": bytes_pinned("peak") / live}
