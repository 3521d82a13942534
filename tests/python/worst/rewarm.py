"""A peak of 24 GiB, as for a checkpoint, freed and unpinned; then one request of 8 MiB. What is pinned two
seconds later. Counted."""

import time

from case import COUNTED, Requests, finish, pinned_mib, scaled, start

torch = start(COUNTED)
requests = Requests()
peak = [requests.make(512) for _ in range(48)]
peak.clear()
torch._C._host_emptyCache()
time.sleep(0.5)
torch._C._host_emptyCache()
cleared = pinned_mib()
small = requests.make(8)
time.sleep(scaled(20, 10) / 10)
finish(pinned_mib=pinned_mib(), cleared_mib=cleared)
