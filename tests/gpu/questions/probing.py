"""How long calls of CUDA take while something else goes on: launches, copies, questions for free memory.

All calls of a process come from one thread, one behind the other, and each has the time when it began, by a clock
that all processes share.
"""

import time

import libcuda
import torch

# A copy is waited for.
LAUNCH, COPY, INFO = "a kernel launch", "a copy of 1 MiB", "cudaMemGetInfo"
CALLS = (LAUNCH, COPY, INFO)
SIZE = 1 << 20
# Leaves the processor to others, and keeps the number of samples small.
PAUSE = 0.0005


class Probe:
    """Has all that it needs before anything is timed."""

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
        """Of each call when it began, and how long it took."""
        seen: dict[str, list[tuple[float, float]]] = {call: [] for call in CALLS}
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for call in CALLS:
                start = time.monotonic()
                self._do(call)
                seen[call].append((start, time.monotonic() - start))
            time.sleep(PAUSE)
        return seen
