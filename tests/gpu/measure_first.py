"""The time to the first block of 64 MiB, while the warm-up that it starts continues in the background.

Each has its own process, with CUDA initialized and nothing pinned, which ends before the next one's turn. The processes of a round start
together, since starting takes longest.
"""

import time

import measuring
from measuring import Worker, in_order, ratio, spread, together


def first(mib: int) -> float:
    """Seconds until it is there."""
    import torch

    start = time.perf_counter()
    torch.empty(mib << 20, dtype=torch.uint8, pin_memory=True)
    return time.perf_counter() - start


def measure(it: measuring.Fixture) -> None:
    # Few enough blocks for any machine: the warm-up only has to continue behind the first one.
    settings = {"ours": {"BUDDY_BLOCK_COUNT": 1} if it.simulated else {}, "stock": {}}
    seen: dict[str, list[float]] = {name: [] for name in settings}
    pairs = 1 if it.simulated else 3
    for _ in it.rounds(5):
        workers = {
            (pair, name): Worker(it.ways[name], "measure_first", **own)
            for pair in range(pairs)
            for name, own in settings.items()
        }
        with together(workers):
            for pair in range(pairs):
                for name in in_order(settings, len(seen["stock"])):
                    seen[name].append(workers[pair, name].ask("first", mib=64))
                    workers[pair, name].close()
        it.write(results(seen))


def results(seen: dict[str, list[float]]) -> dict:
    by_way = {name: spread(values) for name, values in seen.items()}
    return {"seconds": by_way, "ratio": ratio(seen["ours"], seen["stock"])}


if __name__ == "__main__":
    measuring.main(measure)
