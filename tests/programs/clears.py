"""A loop that empties the cache at every step: a block is requested, copied and freed, then other work is done."""

import time

from case import LOCKED, Requests, give_back, main, on_device, scaled


def run(rounds: int, mib: float = 16, pause: float = 0.03) -> dict[str, float]:
    import torch

    device, requests, emptying = on_device(mib), Requests(), 0.0
    begin = time.perf_counter()
    for _ in range(rounds):
        batch = requests.make(mib)
        device.copy_(batch, non_blocking=True)
        torch.cuda.synchronize()
        del batch
        emptying += give_back()
        time.sleep(pause)
    return {"seconds": time.perf_counter() - begin, "emptying": emptying} | requests.figures


if __name__ == "__main__":
    main(run, LOCKED, rounds=scaled(60, 20))
