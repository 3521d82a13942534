"""A buffer that grows by a row at a time, like a cache of keys and values on the host; with exact growth."""

from pinned import MIB, Requests, bytes_pinned, on_device


def run(from_mib: int, to_mib: int, row_kib: int) -> dict[str, float]:
    on_device(1)
    requests, size = Requests(), float(from_mib)
    buffer = requests.pinned(size)
    while size < to_mib:
        size += row_kib / 1024
        # The old buffer is freed after the new one is filled.
        buffer = requests.pinned(size)
    return requests.figures() | {"pinned at most, over live": bytes_pinned("peak") / (2 * buffer.numel() or MIB)}
