"""A server that moves keys and values of sequences that wait to pinned memory, and back when it is their turn again.

One tensor a sequence, as long as the sequence is, so that hardly a size comes again. What waits is limited; the oldest goes.
"""

import random
from collections import deque

from case import main, scaled

# Layers, keys and values, heads and width of a head: 32 KiB a token.
TOKEN = (8, 2, 8, 128)


def run(sequences: int, most_tokens: int) -> None:
    import torch

    draw, copies = random.Random(0), torch.cuda.Stream()
    waiting: deque[torch.Tensor] = deque()
    for _ in range(sequences):
        tokens = min(int(draw.lognormvariate(6.6, 0.8)) + 16, most_tokens // 4)
        made = torch.zeros(tokens, *TOKEN, dtype=torch.float16, device="cuda")
        while sum(map(len, waiting)) + tokens > most_tokens:
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
    main(run, sequences=scaled(120, 30), most_tokens=scaled(12_000, 2000))
