"""Times of CUDA calls while something else runs: launches, copies, queries of free memory.

One thread makes all calls of a process, and records their start times by a clock that all processes share.
"""

import time

import libcuda
import torch

# Waits for a copy.
LAUNCH, COPY, INFO = "a kernel launch", "a copy of 1 MiB", "cudaMemGetInfo"
CALLS = (LAUNCH, COPY, INFO)
SIZE = 1 << 20
# Yields the processor, and keeps the number of samples small.
PAUSE = 0.0005


class Probe:
    """Allocates everything before anything is timed."""

    def __init__(self, runtime: libcuda.Runtime):
        self._runtime = runtime
        self._tensor = torch.zeros(256, device="cuda")
        self._host, self._device = runtime.host_alloc(SIZE), runtime.device_alloc(SIZE)
        self._stream = runtime.stream()
        for call in CALLS:
            self._do(call)
        torch.cuda.synchronize()

    def _do(self, call: str) -> None:
        if call == LAUNCH:
            self._tensor.add_(1)
        elif call == COPY:
            self._runtime.copy(self._device, self._host, SIZE, libcuda.TO_DEVICE, self._stream)
            self._runtime.finish(self._stream)
        else:
            self._runtime.memory_info()

    def run(self, seconds: float) -> dict[str, list[tuple[float, float]]]:
        """Start and duration of each call."""
        seen: dict[str, list[tuple[float, float]]] = {call: [] for call in CALLS}
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for call in CALLS:
                start = time.monotonic()
                self._do(call)
                seen[call].append((start, time.monotonic() - start))
            time.sleep(PAUSE)
        return seen
