"""A request of 16 MiB every 100 ms, all kept, beside as many busy processes as the argument says.

The thread that pins ahead gets little processor time on a busy machine, and a request that waits for it may wait longer than stock
takes to pin 16 MiB.
"""

import time

from case import LOCKED, Requests, busy, main, scaled, word


def run(blocks: int, others: int, mib: float = 16, pause: float = 0.1) -> dict[str, float]:
    with busy(others):
        requests, kept = Requests(), []
        for _ in range(blocks):
            kept.append(requests.make(mib))
            time.sleep(pause)
        return {"seconds": sum(requests.seconds)} | requests.figures


if __name__ == "__main__":
    main(run, LOCKED, blocks=scaled(40, 15), others=int(word(0, "0")))
