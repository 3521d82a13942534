"""The fork has the features of newer releases of stock's allocator, with the same values.

This file is also the program that uses PyTorch's pinned-memory allocator from 2.8 to 2.15, with stock in one process and with the fork
in another one, and reports what it saw. Each function is one subject; sizes lie below and above the fork's threshold, and are powers
of two where bytes are compared, since stock rounds up to them. The fork pins for each request what stock pins (exact growth and nothing
ahead), so that all counters can be compared.
"""

import ctypes
import itertools
import json
import os
import random
import sys

import forked
import torch
from program import MIB, answer, host_stats, pinned, refused, use_gpu
from program import forked as in_a_child
from release import COUNTS_WHAT_IS_ACTIVE, from_minor

AS_STOCK = {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"}
SIZES = (0.03125, 0.5, 8, 32)
SUBJECTS = {}


def subject(is_here: bool = True):
    """Marks a subject, of releases that have the feature."""
    return lambda function: SUBJECTS.setdefault(function.__name__, function) if is_here else function


def counts() -> dict:
    """All counters, but those of time."""
    return {name: value for name, value in host_stats().items() if "time" not in name}


def settle() -> None:
    torch.cuda.synchronize()
    torch._C._host_emptyCache()
    torch.cuda.reset_peak_host_memory_stats()
    torch.cuda.reset_accumulated_host_memory_stats()


def use(tensor) -> None:
    """Copies it on the current stream, and waits for that."""
    tensor.to("cuda", non_blocking=True)
    torch.cuda.synchronize()


def refusal(act) -> str:
    """The first line of the error, without the address or the number of a call."""
    return (refused(act) or "none").splitlines()[0]


@subject(COUNTS_WHAT_IS_ACTIVE)
def statistics(size):
    seen = [counts()]
    first = pinned(size)
    seen.append(counts())
    second = pinned(size * 2)
    del first
    seen.append(counts())
    torch._C._host_emptyCache()
    seen.append(counts())
    torch.cuda.reset_peak_host_memory_stats()
    seen.append(counts())
    third = pinned(size)
    torch.cuda.reset_accumulated_host_memory_stats()
    del second, third
    seen.append(counts())
    return seen


@subject(COUNTS_WHAT_IS_ACTIVE)
def statistics_of_what_streams_used(size):
    block = pinned(size)
    use(block)
    del block
    seen = [counts()]
    block = pinned(size)
    seen.append(counts())
    del block
    torch._C._host_emptyCache()
    return [*seen, counts()]


@subject()
def parts_of_it_are_pinned(size):
    block = pinned(size)
    parts = [block[100:], block[::7], block.view(2, -1)[1], block[-1:], block[:0]]
    return [part.is_pinned() for part in parts]


@subject(from_minor(13))
def cached_up_to_a_limit(size):
    """`pinned_max_cached_size_mb`, from 2.13 on: longer blocks are unpinned when they are freed."""
    seen = []
    torch.cuda.memory._set_allocator_settings("pinned_max_cached_size_mb:1")
    for used in (False, True):
        block = pinned(size)
        if used:
            use(block)
        seen.append(counts()["allocated_bytes.current"])
        del block
        other = pinned(0.001)
        seen.append(counts()["allocated_bytes.current"])
        del other
    torch.cuda.memory._set_allocator_settings("pinned_max_cached_size_mb:1048576")
    return seen


@subject(from_minor(13))
def limits_of_rounding_that_change_while_blocks_are_cached(_):
    """Whatever the rounding is now, blocks cached before serve as in stock's lists."""
    limit = lambda megabytes: torch._C._accelerator_setAllocatorSettings(f"pinned_max_round_threshold_mb:{megabytes}")
    one = lambda size: torch.empty(size, dtype=torch.uint8, pin_memory=True)
    calls = []
    for _ in range(3):
        limit(64)
        [one(1 << power) for power in range(9, 21)]
        limit(0)
        [one((1 << power) - 8) for power in range(9, 21)] + [one(3000)]
        limit(64)
        one(3000)
        calls.append(counts()["num_host_alloc"])
    limit(1 << 20)
    return calls


@subject(from_minor(14))
def history_below_the_threshold_whenever_it_is_recorded(_):
    """With no free of a block that was freed before."""
    draw = random.Random(1)
    seen, held, recording = [], [], False
    for _ in range(400):
        what = draw.random()
        if what < 0.05:
            if recording:
                seen += torch.cuda.memory._snapshot()["host_traces"]
            recording = not recording
            torch.cuda.memory._record_memory_history("all" if recording else None, record_pinned_host_memory=recording)
        elif what < 0.55 or not held:
            held.append(torch.empty(2 ** draw.randint(8, 16), dtype=torch.uint8, pin_memory=True))
        else:
            held.pop(draw.randrange(len(held)))
    torch.cuda.memory._record_memory_history(None)
    assert len(seen) > 50
    return [[entry["action"], entry["size"]] for entry in seen]


def capture(pool, used, deleted, size):
    """A capture in which a block is allocated, used and maybe deleted: the block's pool."""
    graph = torch.cuda.CUDAGraph()
    on_device = torch.empty(int(size * MIB), dtype=torch.uint8, device="cuda")
    with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
        block = pinned(size)
        address = block.data_ptr()
        if used:
            on_device.copy_(block, non_blocking=True)
        if deleted:
            del block
    return graph, address, None if deleted else block


@subject(from_minor(13))
def private_pools_of_captures(size):
    seen = []
    for used, deleted in itertools.product((True, False), repeat=2):
        pool = torch.cuda.graph_pool_handle()
        one, first, block = capture(pool, used, deleted, size)
        other, second, another = capture(pool, used, deleted, size)
        seen.append(first == second)
        del one, other, block, another
    settle()
    return [seen, counts()["active_requests.current"]]


@subject()
def replays_of_a_graph(size):
    source, target = pinned(size).fill_(0), pinned(size)
    on_device = torch.empty_like(source, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        on_device.copy_(source, non_blocking=True)
        target.copy_(on_device, non_blocking=True)
    seen = []
    for step in range(3):
        source.fill_(step)
        graph.replay()
        torch.cuda.synchronize()
        seen.append(bool((target == step).all()))
    return seen


@subject()
def settings_that_are_refused(_):
    wrong = (
        "pinned_max_cached_size_mb:x", "pinned_num_register_threads:3", "pinned_num_register_threads:1000",
        "pinned_use_cuda_host_register:maybe", "pinned_nonsense:1",
    )
    change = torch.cuda.memory._set_allocator_settings
    return [refusal(lambda text=text: change(text)) for text in wrong]


@subject()
def requests_that_are_refused(_):
    empty = [torch.empty(shape, pin_memory=True) for shape in (0, (3, 0, 2))]
    too_much = [1 << 50, 1 << 62]
    errors = [refusal(lambda n=n: torch.empty(n, dtype=torch.uint8, pin_memory=True)) for n in too_much]
    after = pinned(8)
    return [[it.is_pinned() for it in empty], errors, after.is_pinned()]


@subject()
def what_a_child_that_pins_is_told(size):
    """CUDA does not work in a forked child."""
    kept, (reading, writing) = pinned(size), os.pipe()

    def child():
        os.write(writing, refusal(lambda: pinned(size)).encode())

    return [in_a_child(child), os.read(reading, 1000).decode(), kept.is_pinned()]


@subject()
def registered_by_the_program(size):
    runtime = torch.cuda.cudart()
    mine = torch.ones(int(size * MIB), dtype=torch.uint8)
    register = lambda it: int(runtime.cudaHostRegister(it.data_ptr(), it.numel(), 0))
    seen = [mine.is_pinned(), register(mine), mine.is_pinned()]
    seen += [int(runtime.cudaHostUnregister(mine.data_ptr())), mine.is_pinned()]
    # Pinned memory cannot be registered again; the program clears the error.
    seen.append(register(pinned(size)) != 0)
    ctypes.CDLL(None).cudaGetLastError()
    return seen


def test_every_value_is_stocks(run):
    program = forked.program([__file__])
    (stock,), (fork,) = run(program, "stock").value, run(program, **AS_STOCK).value
    assert stock.keys() == fork.keys() and {it.split()[0] for it in stock} == SUBJECTS.keys()
    differ = {key: (stock[key], fork[key]) for key in stock if stock[key] != fork[key]}
    assert not differ, json.dumps(differ, indent=1)
    if COUNTS_WHAT_IS_ACTIVE:
        # Control: a fork that pins ahead differs in allocations.
        warm = {"BUDDY_WARMUP": "sync", "BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "1"}
        (ahead,) = run(forked.program([__file__, "statistics"]), **warm).value
        assert ahead["statistics 8"] != stock["statistics 8"]


if __name__ == "__main__":
    use_gpu()
    seen = {}
    for name in sys.argv[1:] or SUBJECTS:
        for size in SIZES:  # in MiB
            settle()
            seen[f"{name} {size}"] = SUBJECTS[name](size)
    answer(seen)
