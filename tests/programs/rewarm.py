"""A peak, as for a checkpoint, freed and unpinned; then one request of 8 MiB. What is pinned a while later. Counted."""

import time

from case import COUNTED, Requests, give_back, main, pinned_mib, scaled


def run(blocks: int = 48, mib: float = 512, pause: float = 2) -> dict[str, float]:
    requests, after = Requests(), Requests()
    peak = [requests.make(mib) for _ in range(blocks)]
    peak.clear()
    emptying = give_back()
    time.sleep(pause / 4)
    emptying += give_back()
    cleared = pinned_mib()
    small = after.make(8)
    time.sleep(pause)
    figures = {"pinned_mib": pinned_mib(), "cleared_mib": cleared, "pinned_over_live": pinned_mib() / 8}
    del small
    return figures | {"peak": sum(requests.seconds), "emptying": emptying, "first_after": sum(after.seconds)}


if __name__ == "__main__":
    main(run, COUNTED, pause=scaled(2, 1))
