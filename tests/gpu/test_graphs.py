"""Graphs whose copies and kernels read and write blocks of the engine: each replay works, whatever runs beside it."""

from conftest import SIMULATED

PROGRAM = """
use_gpu()
length = 2 * MIB
def pair():
    host = torch.zeros(length, dtype=torch.uint8, pin_memory=True)
    return host, torch.zeros(length, dtype=torch.uint8).cuda()
inside, on_device = pair()
outside, other = pair()
def work():
    on_device.copy_(inside, non_blocking=True)
    other.copy_(on_device, non_blocking=True)
    if {kernels}:
        other.mul_(2).add_(1)
    outside.copy_(other, non_blocking=True)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    work()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    work()
seen = []
for number in range(30):
    inside.fill_(number)
    graph.replay()
    # Blocks that are allocated, written and freed during the replay.
    for _ in range(8):
        torch.empty(length, dtype=torch.uint8, pin_memory=True).fill_(200 + number % 50)
    torch.cuda.synchronize()
    seen.append(bool((outside == (2 * number + 1 if {kernels} else number)).all()))
answer([all(seen), of_engine(inside), of_engine(outside)])
"""


def test_a_replay_moves_and_works_on_what_is_there_now(ours):
    """In the simulator kernels do nothing."""
    assert ours(PROGRAM.format(kernels=not SIMULATED)) == [True] * 3
