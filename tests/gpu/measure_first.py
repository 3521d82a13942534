"""The time to the first block of 64 MiB, with the warm-up that it starts going on behind it.

Each has a process of its own, which has CUDA ready and nothing pinned, and which is gone before the next one's
turn. Those of a round start together, since starting is most of the time.
"""

import rig
from crew import Crew, Worker, in_order
from ratios import ratio, spread


def measure(it: rig.Rig) -> None:
    # As many blocks as fit any machine: the warm-up only has to go on behind the first one.
    settings = {"ours": {"BUDDY_BLOCK_COUNT": 1} if it.simulated else {}, "stock": {}}
    seen: dict[str, list[float]] = {name: [] for name in settings}
    pairs = 1 if it.simulated else 3
    for _ in it.rounds(5):
        workers = {
            (pair, name): Worker(it.ways[name], "work_first", **own)
            for pair in range(pairs)
            for name, own in settings.items()
        }
        with Crew(workers):
            for pair in range(pairs):
                for name in in_order(settings, len(seen["stock"])):
                    seen[name].append(workers[pair, name].ask("first", mib=64))
                    workers[pair, name].close()
        it.write(results(seen))


def results(seen: dict[str, list[float]]) -> dict:
    by_way = {name: spread(values) for name, values in seen.items()}
    return {"seconds": by_way, "ratio": ratio(seen["ours"], seen["stock"])}


if __name__ == "__main__":
    rig.main(measure)
