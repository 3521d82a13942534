"""How long a process that pinned 8 MiB takes to end, beside as many busy processes as the argument says.

It exits during the warm-up, 50 ms and one second after its start; the slower of the two counts.
"""

import subprocess
import sys
import time

from case import ARGUMENTS, LOCKED, busy, scaled, settings

PROGRAM = """
import sys, time, torch
kept = torch.empty(8 << 20, dtype=torch.uint8, pin_memory=True)
time.sleep({nap})
print(time.time(), flush=True)
"""


def end(nap: float) -> float:
    """Seconds from a program's last line until it is gone."""
    program = PROGRAM.format(nap=nap)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True
    )
    return time.time() - float(done.stdout)


settings(LOCKED, PINBUDDY_SIM_QUIET=1)
with busy(int(ARGUMENTS[0]) if ARGUMENTS else 0):
    ends = [end(nap) for nap in (0.05, 1.0) for _ in range(scaled(2, 1))]
print('{"seconds": %f}' % max(ends), flush=True)
