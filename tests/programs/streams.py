"""Time of a pair of 16 MiB while blocks wait for streams: with busy streams (`busy 31`), or after streams of other libraries, each used
once, were destroyed (`external 3000`). Nanoseconds per pair. Counted.
"""

import ctypes
import time

from case import COUNTED, MIB, Requests, main, of_bytes, on_device, scaled, word


def use_once(stream, device, block, cycles: int = 0) -> None:
    """A block that the stream is not done with before it is free, for so many cycles of a kernel before."""
    import torch

    with torch.cuda.stream(stream):
        if cycles:
            torch.cuda._sleep(cycles)
        device.copy_(block, non_blocking=True)


def pair_ns(pairs: int) -> float:
    """The least of five turns: what a pair takes, and nothing of what else the machine does."""
    least = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(pairs):
            of_bytes(16 * MIB)
        least = min(least, (time.perf_counter() - begin) / pairs)
    return least * 1e9


def come_and_go(streams: int, device, requests: Requests) -> None:
    import torch

    runtime = torch.cuda.cudart()
    for _ in range(streams):
        handle = ctypes.c_void_p()
        if int(runtime.cudaStreamCreate(ctypes.addressof(handle))):
            raise RuntimeError("no stream can be created")
        stream = torch.cuda.ExternalStream(handle.value)
        use_once(stream, device, requests.make(8))
        stream.synchronize()
        requests.make(8)  # sees that the stream is done
        if int(runtime.cudaStreamDestroy(handle.value)):
            raise RuntimeError("a stream cannot be destroyed")


def run(busy: list[int], external: int = 0, cycles: int = 2_000_000_000, pairs: int = 200) -> dict[str, float]:
    import torch

    device, requests, figures = on_device(8), Requests(), {}
    # Cached before any stream is busy, since a pin may wait for them.
    kept = [of_bytes(8 * MIB) for _ in range(max(busy) + 1)] + [of_bytes(16 * MIB)]
    kept.clear()
    if external:
        figures["before_ns"] = pair_ns(pairs)
        come_and_go(external, device, requests)
        figures |= requests.figures
    for count in busy:
        for stream in [torch.cuda.Stream() for _ in range(count)]:
            use_once(stream, device, of_bytes(8 * MIB), cycles)
        figures[f"beside_{count}_ns"] = figures["pair_ns"] = pair_ns(pairs)
        torch.cuda.synchronize()
    return figures


if __name__ == "__main__":
    count = int(word(1, "31"))
    external = word(0, "busy") == "external"
    main(run, COUNTED, busy=[1 if external else count], external=count // scaled(1, 3) if external else 0)
