"""Buffers of 1 to 8 GiB, no two alike, with at most 16 GiB live: what is pinned for them at most. Counted."""

import random

from case import COUNTED, MIB, finish, of_bytes, scaled, start

start(COUNTED)
draw = random.Random(8)
live, most = [], 0
for _ in range(scaled(400, 150)):
    wanted = draw.randrange(1025, 8192) * MIB
    while live and sum(it.numel() for it in live) + wanted > 16_384 * MIB:
        live.pop(draw.randrange(len(live)))
    live.append(of_bytes(wanted))
    most = max(most, sum(it.numel() for it in live))
finish(live_mib=most / MIB)
