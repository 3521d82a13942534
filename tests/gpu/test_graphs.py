"""Graphs whose copies read and write blocks of the engine: each replay works, whatever runs beside it."""

from conftest import needs_kernels

HEAD = """
use_gpu()
length = 2 * MIB
def pair():
    host = torch.zeros(length, dtype=torch.uint8, pin_memory=True)
    return host, torch.zeros(length, dtype=torch.uint8).cuda()
inside, on_device = pair()
outside, other = pair()
torch.cuda.synchronize()
"""

REPLAYS = """
def beside(number):
    # Blocks that are allocated, written and freed during the replay.
    for _ in range(8):
        torch.empty(length, dtype=torch.uint8, pin_memory=True).fill_(200 + number % 50)
seen = []
for number in range(30):
    inside.fill_(number)
    graph.replay()
    beside(number)
    torch.cuda.synchronize()
    seen.append(bool((outside == {expected}).all()))
answer([all(seen), of_engine(inside), of_engine(outside)])
"""


def test_replayed_copies_move_what_is_there_now(ours):
    program = """
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    on_device.copy_(inside, non_blocking=True)
    other.copy_(on_device, non_blocking=True)
    outside.copy_(other, non_blocking=True)
"""
    assert ours(HEAD + program + REPLAYS.format(expected="number")) == [True] * 3


@needs_kernels
def test_replayed_kernels_work_on_what_was_copied(ours):
    program = """
def work():
    on_device.copy_(inside, non_blocking=True)
    torch.mul(on_device, 2, out=other)
    other.add_(1)
    outside.copy_(other, non_blocking=True)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    work()
side.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    work()
"""
    assert ours(HEAD + program + REPLAYS.format(expected="2 * number + 1")) == [True] * 3
