"""A server's host pool for a cache of keys and values: pages are copied to pinned memory and back on their own
stream, by a page table. The pool grows by a slab when it is full, and is recreated smaller after a burst."""

import random

import client
import torch

# Two (keys, values), heads, tokens, width of a head.
PAGE = (2, 16, 64, 128)
PAGES_IN_SLAB = 20
ON_DEVICE = 24


def program() -> dict:
    order, copies = random.Random(0), torch.cuda.Stream()
    device = torch.zeros(ON_DEVICE, *PAGE, dtype=torch.float16, device="cuda")
    slabs, free, table, came_back = [], [], {}, []
    for request in range(90):
        page = request % ON_DEVICE
        content = torch.randint(0, 100, PAGE, generator=torch.Generator().manual_seed(request))
        device[page].copy_(content.to(torch.float16))
        if not free:
            slab = client.pinned(PAGES_IN_SLAB, *PAGE, dtype=torch.float16)
            slabs.append(slab)
            free.extend((slab, at) for at in range(PAGES_IN_SLAB))
        slab, at = table[request] = free.pop()
        copies.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(copies):
            slab[at].copy_(device[page], non_blocking=True)
        torch.cuda.current_stream().wait_stream(copies)
        while len(table) > (70 if request < 60 else 20):
            request_of_it = order.choice(sorted(table))
            slab, at = table.pop(request_of_it)
            with torch.cuda.stream(copies):
                back = slab[at].to("cuda", non_blocking=True)
            copies.synchronize()
            came_back.append([request_of_it, client.checksum(back)])
            free.append((slab, at))
    smaller = client.pinned(len(table), *PAGE, dtype=torch.float16)
    for new, (slab, at) in zip(smaller, table.values()):
        new.copy_(slab[at])
    grown = len(slabs)
    slabs.clear()
    free.clear()
    table.clear()
    del slab, new
    back = smaller.to("cuda", non_blocking=True)
    return {"slabs": grown, "came back": came_back, "kept": smaller, "kept, on the device": back}


if __name__ == "__main__":
    client.run(program)
