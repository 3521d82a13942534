"""Buffers of 1 to 8 GiB, no two alike, with at most 16 GiB live: what is pinned for them at most. Counted."""

import random

from case import COUNTED, MIB, main, of_bytes, scaled


def run(count: int) -> dict[str, float]:
    draw = random.Random(8)
    live, most = [], 0
    for _ in range(count):
        wanted = draw.randrange(1025, 8192) * MIB
        while live and sum(it.numel() for it in live) + wanted > 16_384 * MIB:
            live.pop(draw.randrange(len(live)))
        live.append(of_bytes(wanted))
        most = max(most, sum(it.numel() for it in live))
    return {"live_mib": most / MIB}


if __name__ == "__main__":
    main(run, COUNTED, count=scaled(400, 150))
