"""A cold start of large requests, none of them a power of two, and the same once more; in the simulator at a driver's pace, 500 ms a
GiB, one at a time.

With the defaults, with exact growth (`exact`), or the first 8 MiB alone with no warm-up (`first`), for which a whole block was pinned.
"""

import time

from case import EXACT, LOCKED, Requests, main, scaled, word


def run(blocks: int = 16, mib: float = 129.5) -> dict[str, float]:
    requests = Requests()
    begin = time.perf_counter()
    kept = [requests.make(mib) for _ in range(blocks)]
    cold = {"seconds": time.perf_counter() - begin} | requests.figures
    kept.clear()
    again = Requests()
    kept = [again.make(mib) for _ in range(blocks)]
    return cold | {"once_more": sum(again.seconds)}


if __name__ == "__main__":
    way = word(0, "defaults")
    own = {"defaults": {}, "exact": EXACT, "first": {"BUDDY_WARMUP": "off"}}[way]
    sizes = {"blocks": 1, "mib": 8} if way == "first" else {"blocks": scaled(16, 8)}
    main(run, LOCKED, own, {"PINBUDDY_SIM_PIN_MS_PER_GB": 500}, **sizes)
