"""A loop that allocates and keeps one block at a time while every core is busy, as with a loader's workers."""

import os
import subprocess
import sys
import time

from pinned import Requests, on_device

SPIN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


def run(mib: int, blocks: int, pause: float) -> dict[str, float]:
    # These processes do not use CUDA.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    command = [sys.executable, "-S", "-c", SPIN]
    busy = [subprocess.Popen(command, env=plain) for _ in os.sched_getaffinity(0)]
    try:
        on_device(1)
        requests, kept = Requests(), []
        for _ in range(blocks):
            kept.append(requests.pinned(mib))
            time.sleep(pause)
        return requests.figures()
    finally:
        for one in busy:
            one.kill()
            one.wait()
