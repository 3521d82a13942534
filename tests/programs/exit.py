"""How long a process that pinned 8 MiB takes to end, beside as many busy processes as the argument says.

It exits during the warm-up, each time at another moment; the slowest counts.
"""

import subprocess
import sys
import time

from case import LOCKED, busy, main, scaled, word

PROGRAM = """
import sys, time, torch
kept = torch.empty(8 << 20, dtype=torch.uint8, pin_memory=True)
time.sleep({nap})
print(time.time(), flush=True)
"""


def end(nap: float) -> float:
    """Seconds from a program's last line until it is gone."""
    program = PROGRAM.format(nap=nap)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    return time.time() - float(done.stdout)


def run(naps: list[float], others: int = 0) -> dict[str, float]:
    with busy(others):
        return {"seconds": max(end(nap) for nap in naps)}


if __name__ == "__main__":
    main(run, LOCKED, naps=[0.05, 1.0] * scaled(2, 1), others=int(word(0, "0")))
