"""Does a copy from and to registered shared huge pages run at cudaHostAlloc's bandwidth?"""

import time

import asking
import libcuda
import memory
from asking import Asking, Figure
from memory import MIB

CUDA = "cudaHostAlloc"
COPIES, ROUNDS = 8, 5


def gb_per_s(runtime: libcuda.Runtime, host: int, device: int, size: int, direction: int, stream: int) -> float:
    to, source = (device, host) if direction == libcuda.TO_DEVICE else (host, device)
    start = time.perf_counter()
    for _ in range(COPIES):
        runtime.copy(to, source, size, direction, stream)
    runtime.finish(stream)
    return COPIES * size / (time.perf_counter() - start) / 1e9


def compare(it: Asking, runtime: libcuda.Runtime, region: memory.Region, stock: int, device: int) -> None:
    """Both directions, in turns with memory of cudaHostAlloc."""
    size, stream = region.size, runtime.stream()
    hosts = {CUDA: stock, region.kind: region.address}
    for words, direction in {"to the device": libcuda.TO_DEVICE, "to the host": libcuda.TO_HOST}.items():
        seen: dict[str, list[float]] = {name: [] for name in hosts}

        def measure() -> Figure:
            # Skips the first round.
            for number in range(ROUNDS + 1):
                order = list(hosts.items())
                for name, host in order if number % 2 else reversed(order):
                    speed = gb_per_s(runtime, host, device, size, direction, stream)
                    if number:
                        seen[name].append(speed)
            ratios = [one / other for one, other in zip(seen[region.kind], seen[CUDA])]
            return Figure("times cudaHostAlloc's", ratios)

        if it.ask(f"copies {words}, over cudaHostAlloc's bandwidth", region.about(), measure):
            for name, speeds in seen.items():
                it.tell(f"copies {words}", f"{size >> 20} MiB of {name}", lambda: Figure("GB/s", speeds))


def ask(it: Asking) -> None:
    runtime = libcuda.runtime()
    size = (16 if it.simulated else 256) * MIB
    device, stock = runtime.device_alloc(size), runtime.host_alloc(size)

    def registered(kind: str) -> memory.Region:
        region = memory.Region(kind, size)
        runtime.register(region.address, size)
        return region

    for kind in memory.KINDS:
        region = it.need("memory to copy from", kind, lambda: registered(kind))
        if region:
            compare(it, runtime, region, stock, device)
            runtime.unregister(region.address)
            region.close()


if __name__ == "__main__":
    asking.main(ask)
