"""How programs of tests of `pinbuddy.pin_` begin: files, and what is pinned."""

START = """
import gc, warnings
warnings.simplefilter("ignore")  # Of arrays that may not be written.
from program import *
import numpy, tempfile
import pinbuddy
use_gpu()
N = 1 << 20
folders = [tempfile.TemporaryDirectory(dir=it) for it in (None, "/dev/shm")]
FILE, SHM = (it.name + "/data" for it in folders)
for name in (FILE, SHM):
    numpy.arange(N, dtype=numpy.int32).tofile(name)

def in_place():
    return pinbuddy.stats()["in_place"]["bytes"], host_stats()["allocated_bytes.current"] - before

before = host_stats()["allocated_bytes.current"]
registered = sim()["host_registers"] - sim()["host_unregisters"]
NONE = {"in_place": (0, 0), "registered": 0}

def refused(act):
    try:
        act()
    except (TypeError, ValueError, RuntimeError) as error:
        return type(error).__name__, str(error)
    return "", ""

def state():
    return {"in_place": in_place(), "registered": sim()["host_registers"] - sim()["host_unregisters"] - registered}
"""
