"""Exact growth, and steps with different sizes, by two threads: each allocates its part, waits for the other, and frees it.

Memory pinned at the end over the largest live set. It depends on the sizes and on the threads' order, so each of several seeds runs
in its own process (`rounds_threads.py 3` is one of them), and the worst is the result. Counted.
"""

import json
import random
import subprocess
import sys
import threading

from case import COUNTED, EXACT, MIB, WORDS, main, of_bytes, pinned_mib, scaled

THREADS = 2


def run(seed: int) -> dict[str, float]:
    draw = random.Random(seed)
    steps = [[int(draw.uniform(50, 400) * MIB) for _ in range(THREADS)] for _ in range(300)]
    meet = threading.Barrier(THREADS)

    def work(place: int) -> None:
        for step in steps:
            own = [of_bytes(step[place])]
            meet.wait()
            own.clear()
            meet.wait()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(THREADS)]
    for it in threads:
        it.start()
    for it in threads:
        it.join()
    largest = max(map(sum, steps)) / MIB
    return {"pinned_mib": pinned_mib(), "pinned_over_largest": pinned_mib() / largest}


def several(seeds: int) -> None:
    seen = []
    for seed in range(1, seeds + 1):
        command = [sys.executable, __file__, str(seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        seen.append(json.loads(done.stdout.splitlines()[-1]))
    keys = ("pinned_mib", "pinned_over_largest")
    print(json.dumps({key: max(it[key] for it in seen) for key in keys}), flush=True)


if __name__ == "__main__":
    if WORDS:
        main(run, COUNTED, EXACT, seed=int(WORDS[0]))
    else:
        several(scaled(6, 4))
