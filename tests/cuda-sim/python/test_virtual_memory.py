"""Device memory that the driver maps into reserved addresses, and PyTorch's expandable segments on top of it."""

import unittest

from test_processes import run

# The driver's functions, looked up as PyTorch looks them up.
DRIVER = """
UNIT = 2 * MIB

def entry_point(name):
    function, result = ctypes.c_void_p(), ctypes.c_int(-1)
    answer = runtime.cudaGetDriverEntryPointByVersion(
        name.encode(), ctypes.byref(function), 12000, ctypes.c_uint64(0), ctypes.byref(result))
    assert answer == SUCCESS, answer
    return function.value

def call(name, *arguments):
    words = [ctypes.c_uint64(it) if isinstance(it, int) else it for it in arguments]
    return ctypes.CFUNCTYPE(ctypes.c_int)(entry_point(name))(*words)

def properties(device=0, kind=1, exported_as=0):
    return (ctypes.c_uint32 * 8)(kind, exported_as, 1, device)

def create(size, **how):
    handle = ctypes.c_uint64()
    return call("cuMemCreate", ctypes.byref(handle), size, properties(**how), 0), handle.value

def reserve(size):
    base = ctypes.c_uint64()
    assert call("cuMemAddressReserve", ctypes.byref(base), size, 0, 0, 0) == SUCCESS
    return base.value

def allow(base, size, flags=3):
    return call("cuMemSetAccess", base, size, (ctypes.c_uint32 * 3)(1, 0, flags), 1)
"""

EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


def driver(body, **environment):
    run(DRIVER + "\n" + body, **environment)


class Driver(unittest.TestCase):
    def test_what_is_not_offered_is_refused(self):
        driver(
            """
assert create(UNIT, exported_as=8)[0] == NOT_SUPPORTED and create(UNIT, kind=0)[0] == INVALID_VALUE
assert create(UNIT, device=7)[0] == 101 and create(UNIT - 1)[0] == INVALID_VALUE
answer, handle = create(UNIT, exported_as=1)
told = properties(device=9)
assert call("cuMemGetAllocationPropertiesFromHandle", told, handle) == SUCCESS
assert list(told[:4]) == [1, 1, 1, 0], list(told)
assert call("cuMemExportToShareableHandle", told, handle, 1, 0) == NOT_SUPPORTED
size = ctypes.c_uint64()
assert call("cuMemGetAllocationGranularity", ctypes.byref(size), told, 1) == SUCCESS and size.value == UNIT
base, start, length = reserve(UNIT), ctypes.c_uint64(), ctypes.c_uint64()
assert call("cuMemMap", base, UNIT, 0, handle, 0) == SUCCESS and allow(base, UNIT) == SUCCESS
assert call("cuMemGetAddressRange", ctypes.byref(start), ctypes.byref(length), base + 9) == SUCCESS
assert (start.value, length.value) == (base, UNIT) and allow(base, UNIT, flags=0) == SUCCESS
assert call("cuMemGetAddressRange", ctypes.byref(start), ctypes.byref(length), base + 9) == INVALID_VALUE
assert entry_point("cuNothing") is None
assert runtime.cudaGetLastError() == SUCCESS, "the driver's errors are not the runtime's"
"""
        )

    def test_faults_go_by_the_drivers_names(self):
        driver(
            """
assert [create(UNIT)[0] for _ in range(3)] == [SUCCESS, MEMORY_ALLOCATION, SUCCESS]
assert stats()["calls"]["cuMemCreate"] == 3
""",
            PINBUDDY_SIM_FAULTS="cuMemCreate:2=2",
        )


class ExpandableSegments(unittest.TestCase):
    def test_they_grow_and_are_given_back(self):
        run(
            """
import torch
before = torch.cuda.mem_get_info()[0]
small, large = torch.zeros(100, device="cuda"), torch.arange(30 * MIB, device="cuda", dtype=torch.int8)
assert torch.cuda.memory_reserved() == 42 * MIB, torch.cuda.memory_reserved()
assert torch.cuda.mem_get_info()[0] == before - 42 * MIB
more = torch.empty(31 * MIB, device="cuda", dtype=torch.int8)
assert torch.cuda.memory_reserved() == 82 * MIB
segments = torch.cuda.memory_snapshot()
assert [it["is_expandable"] for it in segments] == [True, True]
source = torch.randint(0, 100, (31 * MIB,), dtype=torch.int8)
more.copy_(source)
assert torch.equal(more.cpu(), source)
del small, large, more
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == 0 and torch.cuda.mem_get_info()[0] == before
""",
            **EXPANDABLE,
        )

    def test_a_device_that_is_full(self):
        run(
            """
import torch
kept = [torch.empty(30 * MIB, device="cuda", dtype=torch.int8) for _ in range(6)]
try:
    torch.empty(100 * MIB, device="cuda", dtype=torch.int8)
    raise SystemExit("it was not full")
except torch.cuda.OutOfMemoryError:
    pass
assert torch.cuda.memory_reserved() == 180 * MIB, torch.cuda.memory_reserved()
del kept
other = torch.cuda.Stream()
with torch.cuda.stream(other):
    torch.empty(150 * MIB, device="cuda", dtype=torch.int8)
assert torch.cuda.memory_reserved() == 160 * MIB, torch.cuda.memory_reserved()
""",
            PINBUDDY_SIM_DEVICE_MB="256",
            **EXPANDABLE,
        )


if __name__ == "__main__":
    unittest.main()
