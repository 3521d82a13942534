"""What the tests share: the simulated runtime by its C interface, and its statistics."""

import ctypes
import json

MIB = 1 << 20
GIB = 1 << 30

SUCCESS = 0
INVALID_VALUE = 1
MEMORY_ALLOCATION = 2
INITIALIZATION_ERROR = 3
ALREADY_REGISTERED = 712
NOT_REGISTERED = 713
NOT_SUPPORTED = 801
NOT_SUPPORTED_IN_CAPTURE = 900

runtime = ctypes.CDLL(None)


def stats():
    """What the simulator counted. Its `own_` counts are those of the thread that asks."""
    text = ctypes.create_string_buffer(1 << 14)
    runtime.pinbuddy_sim_stats_json(text, ctypes.c_size_t(len(text)))
    return json.loads(text.value)


def host_alloc(size):
    """`cudaHostAlloc`: its answer, and the address."""
    address = ctypes.c_void_p()
    return runtime.cudaHostAlloc(ctypes.byref(address), ctypes.c_size_t(size), 0), address


def memory_kib(name):
    """A line of /proc/self/status in KiB, such as VmLck (locked) or VmRSS (resident)."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(name))
    return int(line.split()[1])
