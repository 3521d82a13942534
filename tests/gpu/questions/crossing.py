"""May one copy, and one kernel's access, cross two registrations that lie side by side in one mapping?

Every byte is compared, since a driver might copy only a part. The copy is also timed against one within a
registration, since a driver might stage it like pageable memory.
"""

import ctypes
import time

import asking
import libcuda
import memory
from asking import Asking, Figure, Said

COPIES, ROUNDS = 8, 5


class Pair:
    """Two registrations that meet in the middle of one region."""

    def __init__(self, runtime: libcuda.Runtime, region: memory.Region):
        self.region, self.half = region, region.size // 2
        self.border = region.address + self.half
        runtime.register(region.address, self.half)
        runtime.register(self.border, self.half)

    def middle(self, size: int) -> int:
        """The start of `bytes` bytes with the border in their middle."""
        return self.border - size // 2


def pattern(size: int, step: int) -> bytes:
    """Bytes whose period is not a power of two, so that a page that is missing or copied twice is detected."""
    row = bytes(at * step % 251 for at in range(251))
    return (row * (size // 251 + 1))[:size]


def first_difference(seen: bytes, wanted: bytes) -> Said:
    if seen == wanted:
        return Said(True, f"each of {len(wanted)} bytes is right")
    at = next(at for at, (one, other) in enumerate(zip(seen, wanted)) if one != other)
    return Said(False, f"byte {at} of {len(wanted)} is {seen[at]}, expected {wanted[at]}; the border is in the middle")


def copies_arrive(runtime: libcuda.Runtime, pair: Pair, size: int, direction: int) -> Said:
    """The other side is ordinary memory that CUDA does not know."""
    stream, device = runtime.stream(), runtime.device_alloc(size)
    wanted, other = pattern(size, 3), ctypes.create_string_buffer(size)
    host, plain = pair.middle(size), ctypes.addressof(other)
    try:
        if direction == libcuda.TO_DEVICE:
            ctypes.memmove(host, wanted, size)
            runtime.copy(device, host, size, libcuda.TO_DEVICE, stream)
            runtime.finish(stream)
            runtime.copy(plain, device, size, libcuda.TO_HOST, stream)
        else:
            ctypes.memmove(plain, wanted, size)
            ctypes.memset(host, 0, size)
            runtime.copy(device, plain, size, libcuda.TO_DEVICE, stream)
            runtime.finish(stream)
            runtime.copy(host, device, size, libcuda.TO_HOST, stream)
        runtime.finish(stream)
        return first_difference(ctypes.string_at(plain if direction == libcuda.TO_DEVICE else host, size), wanted)
    finally:
        runtime.device_free(device)


def price(runtime: libcuda.Runtime, pair: Pair, size: int) -> Figure:
    """Time of copies across the border, relative to copies of the same size beside it."""
    stream, device = runtime.stream(), runtime.device_alloc(size)

    def seconds(host: int) -> float:
        start = time.perf_counter()
        for _ in range(COPIES):
            runtime.copy(device, host, size, libcuda.TO_DEVICE, stream)
        runtime.finish(stream)
        return time.perf_counter() - start

    try:
        across, beside = pair.middle(size), pair.region.address
        seconds(across), seconds(beside)
        return Figure("times as long", [seconds(across) / seconds(beside) for _ in range(ROUNDS)])
    finally:
        runtime.device_free(device)


def kernels_reach(runtime: libcuda.Runtime, pair: Pair, size: int, simulated: bool) -> Said:
    """One kernel reads both sides and one writes both sides; torch gets the memory as a GPU tensor."""
    host = pair.middle(size)
    apart = [runtime.seen_by_device(side) - side for side in (host, pair.border - 1, pair.border)]
    if any(apart):
        raise libcuda.Unavailable(f"the device sees the memory elsewhere than the host does, by {apart}")
    # Imported here, since that takes seconds.
    import torch
    import views

    torch.cuda.init()
    wanted = pattern(size, 5)
    ctypes.memmove(host, wanted, size)
    view = views.bytes_at(host, size)
    if view.data_ptr() != host or not view.is_cuda:
        raise libcuda.Unavailable("torch has copied what it was to look at")
    try:
        there = (view ^ 255).cpu()
        read = ctypes.string_at(there.data_ptr(), size)
        view.bitwise_xor_(255)
        torch.cuda.synchronize()
    except RuntimeError as error:
        # torch's message for an access without a mapping.
        return Said(False, str(error).splitlines()[0])
    if simulated:
        raise libcuda.Unavailable("kernels compute nothing here")
    turned = bytes(255 - byte for byte in wanted)
    seen = first_difference(read, turned)
    return first_difference(ctypes.string_at(host, size), turned) if seen.yes else seen


def ask(it: Asking) -> None:
    runtime = libcuda.runtime()
    size = (4 if it.simulated else 32) * memory.MIB
    pairs: list[Pair] = []

    def make(kind: str) -> Said:
        pairs.append(Pair(runtime, memory.Region(kind, 2 * size)))
        return Said(True, pairs[-1].region.about())

    for kind in (memory.SHARED_HUGE, memory.SMALL_PAGES):
        if not it.ask("may two registrations lie side by side?", kind, lambda: make(kind), refusal_is_no=True):
            continue
        pair, each = pairs[-1], f"{size >> 20} MiB of {kind}"
        for name, direction in {"to the device": libcuda.TO_DEVICE, "to the host": libcuda.TO_HOST}.items():
            it.ask(
                f"does a copy {name} cross their border?", each,
                lambda: copies_arrive(runtime, pair, size, direction), refusal_is_no=True,
            )
        it.ask("a copy across, over one beside the border", each, lambda: price(runtime, pair, size))
    # Last, since a refused access destroys the context.
    if pairs:
        it.ask(
            "does a kernel's access cross their border?", f"{size >> 20} MiB of {pairs[0].region.kind}",
            lambda: kernels_reach(runtime, pairs[0], size, it.simulated),
        )


if __name__ == "__main__":
    asking.main(ask)
