"""Bandwidth of copies to and from blocks of the engine, by page size, relative to cudaHostAlloc's.

One process for each kind of pinned memory: stock's cudaHostAlloc; the engine's by default, and in pages of 4 KiB.
"""

import time

import measuring
from measuring import Worker, in_order, ratio, spread, together

DIRECTIONS = ("h2d", "d2h")
DEFAULT = "engine"
OURS = {DEFAULT: {}, "engine, 4 KiB": {"BUDDY_HUGE_PAGES": "off"}}


_blocks: dict[int, tuple] = {}


def _blocks_of(size: int) -> tuple:
    """On the host and on the device, the same ones each time."""
    import torch

    if size not in _blocks:
        host = torch.empty(size, dtype=torch.uint8, pin_memory=True).fill_(1)
        _blocks[size] = host, torch.empty(size, dtype=torch.uint8, device="cuda")
    return _blocks[size]


def is_engines(size: int) -> bool:
    """Whether the host's block is a part of the engine's memory."""
    from program import of_engine

    return of_engine(_blocks_of(size)[0])


def gb_per_s(direction: str, size: int, copies: int) -> float:
    """So many consecutive copies on a stream, `h2d` or `d2h`."""
    import torch

    host, device = _blocks_of(size)
    to, source = (device, host) if direction == "h2d" else (host, device)
    to.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(copies):
        to.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    return copies * size / (time.perf_counter() - start) / 1e9


def measure(it: measuring.Fixture) -> None:
    mib, copies = ([8, 32], 2) if it.simulated else ([16, 64, 256], 8)
    blocks = {"BUDDY_BLOCK_SIZE_MB": 128 if it.simulated else 1024, "BUDDY_BLOCK_COUNT": 1, "BUDDY_WARMUP": "sync"}
    workers = {"stock": Worker(it.ways["stock"], "measure_bandwidth")}
    for name, settings in OURS.items():
        workers[name] = Worker(it.ways["ours"], "measure_bandwidth", **blocks | settings)
    sizes = {f"{it} MiB": it << 20 for it in mib}
    with together(workers):
        for name in OURS:
            if not all(workers[name].ask("is_engines", size=size) for size in sizes.values()):
                raise RuntimeError(f"{name}: the blocks are not the engine's")
        seen: dict = {direction: {size: {name: [] for name in workers} for size in sizes} for direction in DIRECTIONS}
        for number in it.rounds(15):
            for direction in DIRECTIONS:
                for size, length in sizes.items():
                    for name in in_order(workers, number):
                        speed = workers[name].ask("gb_per_s", direction=direction, size=length, copies=copies)
                        seen[direction][size][name].append(speed)
            it.write(results(seen))


def results(seen: dict) -> dict:
    def each(what):
        return {direction: {size: what(own) for size, own in by_size.items()} for direction, by_size in seen.items()}

    return {
        "gb_per_s": each(lambda own: {name: spread(values) for name, values in own.items()}),
        "ratio": each(lambda own: {name: ratio(own[name], own["stock"]) for name in OURS}),
        "largest": list(seen["h2d"])[-1],
    }


if __name__ == "__main__":
    measuring.main(measure)
