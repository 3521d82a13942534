"""A buffer longer than a block that grows by a MiB per step: the new one is allocated before the old one is freed
(`new`), or after (`old`). Stock rounds to the next power of two and pins once or twice; a region per step would pin
at each step. Counted, at a driver's pace.
"""

import time

from case import ARGUMENTS, COUNTED, PACED, Requests, finish, scaled, start

old_first = ARGUMENTS[:1] == ["old"]
start(COUNTED, PACED)
requests, mib = Requests(), 1100
begin = time.perf_counter()
buffer = requests.make(mib)
for _ in range(scaled(40, 12)):
    mib += 1
    if old_first:
        del buffer
    buffer = requests.make(mib)
finish(seconds=time.perf_counter() - begin, **requests.figures)
