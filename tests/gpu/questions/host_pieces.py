"""cuMemCreate on a node of the host, two pieces side by side in one range: what they cost, whether copies cross
their border, and whether a forked child reads them.
"""

import ctypes
import time

import arena
import asking
import children
import crossing
import libcuda
import memory
from asking import Asking, Figure, Said
from memory import GIB, MIB

ROUNDS = 3


class Costs:
    """Seconds per GiB of each operation on a piece."""

    def __init__(self):
        self.make: list[float] = []
        self.touch: list[float] = []
        self.give_back: list[float] = []

    def round(self, its: arena.Arena, size: int) -> None:
        if size > memory.room():
            raise libcuda.Unavailable(f"{size >> 20} MiB is more than there is room for")
        scale = GIB / size
        start = time.perf_counter()
        at = its.grow(size)
        made = time.perf_counter()
        ctypes.memset(at, 1, size)
        touched = time.perf_counter()
        its.shrink()
        self.make.append((made - start) * scale)
        self.touch.append((touched - made) * scale)
        self.give_back.append((time.perf_counter() - touched) * scale)


class SideBySide:
    """Two adjacent pieces, like the two registrations of `crossing`."""

    def __init__(self, its: arena.Arena, half: int):
        self.address = its.grow(half)
        self.border = its.grow(half)

    def middle(self, size: int) -> int:
        return self.border - size // 2


def reserve() -> tuple[libcuda.Runtime, arena.Arena]:
    """Names the functions that the driver lacks."""
    driver = libcuda.Driver()
    driver.call("cuInit", 0)
    node = arena.node_of(driver, 0)
    return libcuda.runtime(), arena.Arena(driver, 0, node, 8 * GIB)


def ask(it: Asking) -> None:
    made = it.need("host memory in the driver's own pieces", "cuMemCreate on a node of the host", reserve)
    if made:
        examine(it, *made)


def examine(it: Asking, runtime: libcuda.Runtime, its: arena.Arena) -> None:
    """All questions on an arena; the adjacent pieces are kept."""
    half = (4 if it.simulated else 32) * MIB
    pairs: list[SideBySide] = []

    def map_two() -> Said:
        pairs.append(SideBySide(its, half))
        ctypes.memset(pairs[0].address, 1, 2 * half)
        return Said(pairs[0].border == pairs[0].address + half, "the host has written to both")

    on = f"two pieces of {half >> 20} MiB"
    it.ask("may two pieces lie side by side?", on, map_two, refusal_is_no=True)
    if pairs:
        for name, direction in {"to the device": libcuda.TO_DEVICE, "to the host": libcuda.TO_HOST}.items():
            it.ask(
                f"does a copy {name} cross their border?", on,
                lambda: crossing.copies_arrive(runtime, pairs[0], half, direction), refusal_is_no=True,
            )
        wanted = crossing.pattern(half, 7)
        ctypes.memmove(pairs[0].middle(half), wanted, half)
        it.ask("does a forked child read them?", on, lambda: children.reads(pairs[0].middle(half), wanted))
    for size in (16 * MIB,) if it.simulated else (64 * MIB, GIB):
        costs, told = Costs(), f"a piece of {size >> 20} MiB"

        def rounds() -> Figure:
            for _ in range(ROUNDS):
                costs.round(its, size)
            return Figure("s/GiB", costs.make)

        it.ask("making and mapping a piece", told, rounds)
        it.tell("writing all of it the first time", told, lambda: Figure("s/GiB", costs.touch))
        it.tell("giving it back", told, lambda: Figure("s/GiB", costs.give_back))


if __name__ == "__main__":
    asking.main(ask)
