"""A cold start of sixteen requests of 129.5 MiB where pins take a driver's time, 500 ms a GiB, one at a time.

With the defaults, with exact growth (`exact`), or the first 8 MiB alone with no warm-up (`first`), for which a
whole block was pinned.
"""

import time

from case import ARGUMENTS, EXACT, LOCKED, Requests, finish, scaled, start

way = ARGUMENTS[0] if ARGUMENTS else "defaults"
own = {"defaults": {}, "exact": EXACT, "first": {"BUDDY_WARMUP": "off"}}[way]
start(LOCKED, own, PINBUDDY_SIM_PIN_MS_PER_GB=500)
requests = Requests()
begin = time.perf_counter()
if way == "first":
    kept = [requests.make(8)]
else:
    kept = [requests.make(129.5) for _ in range(scaled(16, 8))]
finish(seconds=time.perf_counter() - begin, slowest=max(requests.seconds))
