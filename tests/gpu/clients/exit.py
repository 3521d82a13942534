"""A program that pins one block and ends: `nursery.py` times how long until its process is gone."""

import time

from pinned import Requests

# A normal exit of the interpreter.
ENDS = True


def run(mib: int, pause: float) -> dict[str, float]:
    requests = Requests()
    global kept
    kept = requests.pinned(mib)
    time.sleep(pause)
    return {}
