"""Requests of at least the threshold are the engine's; what comes back behaves as pinned memory."""

import random
import threading

import pinbuddy
import pytest
from conftest import BLOCK_MB, BLOCKS, MIB, THRESHOLD_MB, engine_segment


def test_the_fork_says_what_it_is(torch):
    assert pinbuddy.enabled()
    assert torch.__version__ == pinbuddy.version() == torch.version.__version__
    assert ".pinbuddy." in torch.__version__


def test_a_large_request_is_served_by_the_engine(torch, pinned):
    before = pinbuddy.stats()["engine"]["hits"]
    tensor = pinned(8 * MIB)
    assert tensor.is_pinned()
    assert engine_segment(tensor) is not None
    assert pinbuddy.stats()["engine"]["hits"] == before + 1


def test_the_threshold_is_the_smallest_request_of_the_engine(torch, pinned):
    assert engine_segment(pinned(THRESHOLD_MB * MIB)) is not None
    assert engine_segment(pinned(THRESHOLD_MB * MIB - 1)) is None


def test_the_first_request_pins_every_block(run):
    outcome = run(
        """
        import json, pinbuddy, torch
        cold = pinbuddy.stats()
        small = torch.empty(1000, pin_memory=True)
        still = pinbuddy.stats()
        large = torch.empty(8 << 20, pin_memory=True)
        warm = pinbuddy.stats()
        print(json.dumps([[len(it["segments"]), it["warm_up"]] for it in (cold, still, warm)]))
        """,
        BUDDY_BLOCK_SIZE_MB=32,
        BUDDY_BLOCK_COUNT=3,
    )
    assert outcome.value == [[0, "cold"], [0, "cold"], [3, "done"]]
    assert outcome.warnings == []


def test_threshold_zero_serves_every_request(run):
    outcome = run(
        """
        import json, pinbuddy, torch
        kept = [torch.empty(n, dtype=torch.uint8, pin_memory=True) for n in (1, 4095, 4096, 4097)]
        engine = pinbuddy.stats()["engine"]
        print(json.dumps([engine["hits"], engine["live_bytes"]["current"]]))
        """,
        BUDDY_BLOCK_SIZE_MB=16,
        BUDDY_BLOCK_COUNT=1,
        BUDDY_THRESHOLD_MB=0,
    )
    assert outcome.value == [4, 5 * 4096]


def test_an_exact_fit_wastes_nothing(torch, pinned):
    """Stock would round each request of 9.1 MiB up to 16 MiB."""
    size = 9 * MIB + 100_000
    tensors = [pinned(size) for _ in range(BLOCKS * (BLOCK_MB * MIB // size))]
    engine = pinbuddy.stats()["engine"]
    assert engine["pinned_bytes"]["current"] == BLOCKS * BLOCK_MB * MIB
    assert engine["live_bytes"]["current"] - size * len(tensors) < 4096 * len(tensors)


def test_blocks_that_are_freed_merge_and_serve_again_without_a_pin(torch, pinned):
    def fill(size):
        return [pinned(size) for _ in range(BLOCKS * (BLOCK_MB * MIB // size))]

    fill(BLOCK_MB * MIB)
    calls = torch.cuda.host_memory_stats()["num_host_alloc"]
    for size in (4 * MIB, 16 * MIB, 3 * MIB + 4096, BLOCK_MB * MIB):
        del fill(size)[:]
    assert torch.cuda.host_memory_stats()["num_host_alloc"] == calls


def test_a_request_above_a_block_gets_what_it_asks_for(torch, pinned):
    size = (BLOCK_MB + 37) * MIB + 5
    tensor = pinned(size)
    segment = engine_segment(tensor)
    assert size <= segment["bytes"] <= size + 2 * MIB


def test_many_sizes_hold_their_own_data(torch, pinned):
    """No two live tensors share a byte (I2)."""
    rng = random.Random(181094)
    live = []
    for step in range(400):
        if live and rng.random() < 0.45:
            tensor, mark = live.pop(rng.randrange(len(live)))
            assert bool((tensor == mark).all()), f"step {step}: another tensor wrote here"
        else:
            tensor, mark = pinned(rng.randrange(1, 6 * MIB)), step % 251
            tensor.fill_(mark)
            live.append((tensor, mark))
    for tensor, mark in live:
        assert bool((tensor == mark).all())


@pytest.mark.parametrize("size", [MIB, 5 * MIB + 3, 40 * MIB])
def test_copies_both_ways_arrive_whole(torch, pinned, size):
    source, back = pinned(size), pinned(size)
    assert engine_segment(source) and engine_segment(back)
    source.copy_(torch.arange(size, dtype=torch.int64).remainder_(251).to(torch.uint8))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        on_device = source.to("cuda", non_blocking=True)
        back.copy_(on_device, non_blocking=True)
    stream.synchronize()
    assert torch.equal(source, back)


def test_views_and_pinned_copies_are_pinned(torch, pinned):
    tensor = pinned(8 * MIB)
    assert tensor[MIB : 2 * MIB].is_pinned()
    copy = torch.ones(4 * MIB, dtype=torch.uint8).pin_memory()
    assert copy.is_pinned() and engine_segment(copy) is not None and bool((copy == 1).all())


def test_threads_get_blocks_of_their_own(torch, pinned):
    failures = []

    def work(mark):
        for _ in range(60):
            tensor = pinned(2 * MIB + mark * 4096)
            tensor.fill_(mark)
            other = pinned(64 * 1024)
            other.fill_(mark)
            if not (bool((tensor == mark).all()) and bool((other == mark).all())):
                failures.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_block_allocated_on_one_thread_can_be_freed_on_another(torch, pinned):
    box = [pinned(8 * MIB)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert pinbuddy.stats()["engine"]["live_blocks"]["current"] == 0
