"""A program whose plan serves requests of any test: on each stream of torch's, the same blocks in each of its steps.

usage: device_steps.py    with BUDDY_DEVICE_PLAN: recorded

PyTorch's tests run on streams of their own, one after the other from torch's pool of them. What a test asks for is
none of these blocks, and gets an idle place of its stream's region.
"""

import random

import torch

MIB = 1 << 20
# The default stream, and the pool of streams.
STREAMS = 33


def steps(sizes):
    for _ in range(8):
        live = []
        for at, size in enumerate(sizes):
            live.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
            if at % 3 == 2:
                del live[at % len(live)]


def main():
    draw = random.Random(5)
    sizes = [draw.randrange(MIB + 1, 24 * MIB) for _ in range(16)]
    streams = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(STREAMS - 1)]
    for stream in streams:
        with torch.cuda.stream(stream):
            steps(sizes)


if __name__ == "__main__":
    main()
