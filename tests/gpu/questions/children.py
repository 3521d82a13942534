"""Tests what a forked child sees of its parent's memory."""

import ctypes
import os
import signal
import time

from asking import Said

PATIENCE = 5.0


def reads(address: int, wanted: bytes) -> Said:
    """Whether a newly forked child reads these bytes at the address. It may crash or hang."""
    child = os.fork()
    if child == 0:
        os._exit(0 if ctypes.string_at(address, len(wanted)) == wanted else 1)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code < 0:
                return Said(False, f"the child died of {signal.Signals(-code).name}")
            return Said(code == 0, "the child reads what its parent wrote" if code == 0 else "it reads something else")
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return Said(False, f"the child did not end within {PATIENCE:.0f} s")
