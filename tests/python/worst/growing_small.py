"""Exact growth, and a buffer that grows row by row from 8 to 64 MiB, like a cache of keys and values: the new one
is allocated, then the old one is freed. Each step requests a new size. Counted, at a driver's pace.
"""

import time

from case import COUNTED, EXACT, PACED, Requests, finish, pinned_ever_mib, scaled, start

start(COUNTED, EXACT, PACED)
row = scaled(64, 256) / 1024
requests, mib = Requests(), 8.0
begin = time.perf_counter()
buffer = requests.make(mib)
while mib < 64:
    mib += row
    buffer = requests.make(mib)
finish(seconds=time.perf_counter() - begin, pinned_ever_mib=pinned_ever_mib())
