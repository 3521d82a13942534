"""A server that moves keys and values of sequences that wait to pinned memory, and back when it is their turn again.

One tensor a sequence, as long as the sequence is, so that hardly a size comes again. What waits is limited; the oldest goes.
"""

import random
from collections import deque

import torch
import work

# Layers, keys and values, heads and width of a head: 32 KiB a token.
TOKEN = (8, 2, 8, 128)
SEQUENCES, MOST_TOKENS = (30, 2000) if work.SMALL else (120, 12_000)


def program() -> None:
    draw, copies = random.Random(0), torch.cuda.Stream()
    waiting: deque[torch.Tensor] = deque()
    for _ in range(SEQUENCES):
        tokens = min(int(draw.lognormvariate(6.6, 0.8)) + 16, MOST_TOKENS // 4)
        made = torch.zeros(tokens, *TOKEN, dtype=torch.float16, device="cuda")
        while sum(map(len, waiting)) + tokens > MOST_TOKENS:
            waiting.popleft()
        copies.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(copies):
            waiting.append(torch.empty(made.shape, dtype=made.dtype, pin_memory=True))
            waiting[-1].copy_(made, non_blocking=True)
            made.record_stream(copies)
        if draw.random() < 0.5:
            at = draw.randrange(len(waiting))
            back = waiting[at]
            del waiting[at]
            with torch.cuda.stream(copies):
                back.to("cuda", non_blocking=True)
        copies.synchronize()


if __name__ == "__main__":
    work.run(program)
