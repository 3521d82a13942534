"""cudaHostUnregister and related calls: seconds per GiB, and whether they wait for the device.

A spinning kernel keeps its own stream busy; a call that returns while it runs has not waited.
"""

import time

import asking
import libcuda
import memory
import torch
from asking import Asking, Figure, Said
from memory import GIB, MIB

KERNEL = 0.4
# Share of the kernel's time: a longer call has waited for the kernel.
MOST = 0.5


class LongKernel:
    """Lasts about `KERNEL` seconds."""

    def __init__(self):
        self.stream = torch.cuda.Stream()
        self.cycles = 10_000_000
        # The first launch loads the kernel.
        self._run(1000)
        for _ in range(2):
            self.cycles = int(self.cycles * KERNEL / max(1e-4, self._run(self.cycles)))
        self.seconds = self._run(self.cycles)

    def _run(self, cycles: int) -> float:
        start = time.perf_counter()
        self.launch(cycles)
        self.stream.synchronize()
        return time.perf_counter() - start

    def launch(self, cycles: int | None = None) -> None:
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(cycles or self.cycles)


def waits(kernel: LongKernel, call) -> Said:
    """Whether the call returns only after the kernel."""
    if kernel.seconds < 0.5 * KERNEL:
        raise libcuda.Unavailable(f"the kernel that should last {KERNEL} s lasts {kernel.seconds:.3f}")
    kernel.launch()
    start = time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    over = kernel.stream.query()
    kernel.stream.synchronize()
    told = f"it took {seconds * 1e3:.2f} ms of a kernel's {kernel.seconds * 1e3:.0f} ms"
    if over and seconds < MOST * kernel.seconds:
        raise libcuda.Unavailable(f"the kernel was over too soon: {told}")
    return Said(over, told)


def paces(it: Asking, runtime: libcuda.Runtime, kind: str, size: int) -> None:
    def measure() -> Figure:
        seconds = []
        with memory.Region(kind, size) as region:
            for _ in range(3):
                runtime.register(region.address, size)
                start = time.perf_counter()
                runtime.unregister(region.address)
                seconds.append((time.perf_counter() - start) * GIB / size)
        return Figure("s/GiB", seconds)

    it.ask("cudaHostUnregister", f"{size >> 20} MiB of {kind}", measure)


def waiting(it: Asking, runtime: libcuda.Runtime) -> None:
    size = (8 if it.simulated else 64) * MIB
    kernel = it.need("a kernel that lasts", f"{KERNEL} s", LongKernel)
    region = it.need("memory to register", "any kind", lambda: memory.Region(memory.best_kind(), size))
    if not kernel or not region:
        return
    own: list[int] = []
    calls = {
        "cudaHostRegister": lambda: runtime.register(region.address, size),
        "cudaHostUnregister": lambda: runtime.unregister(region.address),
        "cudaHostAlloc": lambda: own.append(runtime.host_alloc(size)),
        "cudaFreeHost": lambda: runtime.host_free(own.pop()),
    }
    for name, call in calls.items():
        on = f"{size >> 20} MiB" + (f" of {region.kind}" if name.endswith("gister") else "")
        it.ask(f"does {name} wait for a kernel that does not use the memory?", on, lambda: waits(kernel, call))


def ask(it: Asking) -> None:
    runtime = libcuda.runtime()
    waiting(it, runtime)
    for kind in memory.KINDS:
        for size in (16 * MIB, 32 * MIB) if it.simulated else (64 * MIB, GIB):
            paces(it, runtime, kind, size)


if __name__ == "__main__":
    asking.main(ask)
