"""A request of 16 MiB every 100 ms, all kept, beside as many busy processes as the argument says.

The thread that pins ahead gets little processor time on a busy machine, and a request that waits for it may wait
longer than stock takes to pin 16 MiB.
"""

import time

from case import ARGUMENTS, LOCKED, Requests, busy, finish, scaled, start

with busy(int(ARGUMENTS[0]) if ARGUMENTS else 0):
    start(LOCKED)
    requests, kept = Requests(), []
    for _ in range(scaled(40, 15)):
        kept.append(requests.make(16))
        time.sleep(0.1)
finish(seconds=sum(requests.seconds), slowest=max(requests.seconds))
