"""A request of 16 TiB, refused and caught, after a warm-up; then the program's steps.

The last resort before a refusal is to unpin all idle memory, which is everything warm. Counted, at a driver's pace: a real machine
would be out of memory before it refused.
"""

import time

from case import COUNTED, PACED, Requests, main, pins


def run() -> dict[str, float]:
    kept = [Requests().make(64) for _ in range(8)]
    try:
        import pinbuddy

        pinbuddy.warm_up(wait=True)
    except ImportError:
        pass
    del kept
    try:
        Requests().make(16 << 20)
    except RuntimeError:
        pass
    requests, before = Requests(), pins()
    begin = time.perf_counter()
    for _ in range(4):
        kept = [requests.make(64) for _ in range(8)]
        del kept
    return {"seconds": time.perf_counter() - begin, "pins_after": pins() - before} | requests.figures


if __name__ == "__main__":
    main(run, COUNTED, PACED, {"PINBUDDY_SIM_FAIL_PIN_AFTER_MB": 100_000})
