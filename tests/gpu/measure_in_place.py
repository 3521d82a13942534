"""Memory that is there already, pinned where it is: seconds per GiB beside cudaHostAlloc's, and whether it is pinned memory then.

One process for each, in turns. In each round the memory is made and written, which is not timed, then pinned, copied to the GPU and
compared byte by byte, and unpinned.
"""

import os
import tempfile
import time

import measuring
from measuring import Worker, in_order, ratio, spread, together

CUDA = "cudaHostAlloc"
KINDS = ("heap", "shared memory", "file, shared", "file, to be read")


def turn(kind: str, size: int) -> dict:
    """Seconds per GiB to pin memory of a kind, and what was seen of it."""
    import torch

    if kind == CUDA:
        start = time.perf_counter()
        memory = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        taken = time.perf_counter() - start
        seen = outcome(written(memory), taken)
        del memory
        torch._C._host_emptyCache()
        return seen
    import pinbuddy

    with tempfile.NamedTemporaryFile(dir="/dev/shm" if kind == "shared memory" else None) as file:
        memory = made(kind, file, size)
        start = time.perf_counter()
        try:
            pinbuddy.pin_(memory, read_only=kind == "file, to be read")
        except RuntimeError as error:
            return {"s_per_gib": None, "is_pinned": False, "arrived": False, "why": str(error)}
        taken = time.perf_counter() - start
        seen = outcome(memory, taken)
        pinbuddy.unpin_(memory)
        return seen | {"unpinned": not memory.is_pinned()}


def made(kind: str, file, size: int):
    """A tensor of this kind of memory, every page of which is there."""
    import torch

    if kind == "heap":
        return written(torch.empty(size, dtype=torch.uint8))
    os.truncate(file.name, size)
    return written(torch.from_file(file.name, shared=True, size=size, dtype=torch.uint8))


def written(memory):
    """The same memory, in which no two pages of a MiB are alike."""
    import torch

    pattern = torch.frombuffer(bytearray(os.urandom(1 << 20)), dtype=torch.uint8)
    memory.view(-1, 1 << 20).copy_(pattern)
    return memory


def outcome(memory, seconds: float) -> dict:
    """What a copy of the memory shows that was pinned in so many seconds."""
    import torch

    there = torch.empty(memory.nbytes, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    there.copy_(memory, non_blocking=True)
    asked = time.perf_counter() - start
    torch.cuda.synchronize()
    copied = time.perf_counter() - start
    return {
        "s_per_gib": seconds / (memory.nbytes / (1 << 30)),
        "is_pinned": memory.is_pinned(),
        "arrived": torch.equal(there.cpu(), memory),
        # Of the time of the copy, the part that the program waited for.
        "waited": asked / copied,
    }


def measure(it: measuring.Fixture) -> None:
    # On the heap glibc gives more than 32 MiB pages of their own.
    size = (48 if it.simulated else 1024) << 20
    workers = {CUDA: Worker(it.ways["stock"], "measure_in_place")}
    workers |= {kind: Worker(it.ways["ours"], "measure_in_place") for kind in KINDS}
    seen: dict = {name: [] for name in workers}
    with together(workers):
        for number in it.rounds(6):
            for name in in_order(workers, number):
                seen[name].append(workers[name].ask("turn", kind=name, size=size))
            it.write(results(seen))


def results(seen: dict) -> dict:
    refused = {name: turns[0]["why"] for name, turns in seen.items() if "why" in turns[0]}
    pinned = {name: turns for name, turns in seen.items() if name not in refused}
    costs = {name: [it["s_per_gib"] for it in turns] for name, turns in pinned.items()}
    return {
        "s_per_gib": {name: spread(values) for name, values in costs.items()},
        "over_cudahostalloc": {name: ratio(values, costs[CUDA]) for name, values in costs.items() if name != CUDA},
        "waited": {name: spread([it["waited"] for it in turns]) for name, turns in pinned.items()},
        "right": {name: all(it["is_pinned"] and it["arrived"] and it.get("unpinned", True) for it in turns) for name, turns in pinned.items()},
        "refused": refused,
    }


if __name__ == "__main__":
    measuring.main(measure)
