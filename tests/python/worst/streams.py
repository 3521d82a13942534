"""Time of a pair of 16 MiB while blocks wait for streams: with busy streams (`busy 31`), or after streams of other
libraries, each used once, were destroyed (`external 3000`). Nanoseconds per pair. Counted.
"""

import ctypes
import time

from case import ARGUMENTS, COUNTED, MIB, finish, of_bytes, scaled, start

torch = start(COUNTED)
runtime = ctypes.CDLL(None)
device = torch.zeros(8 * MIB, dtype=torch.uint8, device="cuda")


def use_once(stream, cycles: int = 0) -> None:
    """A block that the stream is not done with before it is free, for so many cycles of a kernel before."""
    with torch.cuda.stream(stream):
        if cycles:
            torch.cuda._sleep(cycles)
        device.copy_(of_bytes(8 * MIB), non_blocking=True)


def pair() -> float:
    """The least of five turns: what a pair takes, and nothing of what else the machine does."""
    least = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(200):
            of_bytes(16 * MIB)
        least = min(least, (time.perf_counter() - begin) / 200)
    return least * 1e9


def beside(streams: int) -> float:
    for stream in [torch.cuda.Stream() for _ in range(streams)]:
        use_once(stream, cycles=2_000_000_000)
    taken = pair()
    torch.cuda.synchronize()
    return taken


def come_and_go(streams: int) -> None:
    for _ in range(streams):
        handle = ctypes.c_void_p()
        assert runtime.cudaStreamCreate(ctypes.byref(handle)) == 0
        stream = torch.cuda.ExternalStream(handle.value)
        use_once(stream)
        stream.synchronize()
        of_bytes(8 * MIB)  # sees that the stream is done
        runtime.cudaStreamDestroy(handle)


if ARGUMENTS[:1] == ["external"]:
    count = int(ARGUMENTS[1])
    come_and_go(count // scaled(1, 3))
    finish(pair_ns=beside(1))
else:
    finish(pair_ns=beside(int(ARGUMENTS[1]) if ARGUMENTS else 31))
