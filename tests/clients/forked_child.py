"""A forked child that reads and writes its parent's pinned tensor, and frees one that a stream has used.

usage: forked_child.py large|small
"""

import os
import sys

import client
import torch

SIZES = {"large": 16 << 20, "small": 1 << 18}


def program() -> dict:
    data = torch.arange(SIZES[sys.argv[1]], dtype=torch.float32).pin_memory()
    used = torch.ones(data.shape).pin_memory()
    used.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    child = os.fork()
    if child == 0:
        del used
        whole = float(data[12345]) == 12345.0
        data[1] = 4242.0
        os._exit(0 if whole else 1)
    status = os.waitpid(child, 0)[1]
    # The GPU sees the same memory as the parent.
    back = data.to("cuda", non_blocking=True)[:2].cpu()
    return {"child": status, "seen by the parent": float(data[1]), "seen by the GPU": back}


if __name__ == "__main__":
    client.run(program)
