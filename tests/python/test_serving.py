"""The engine serves requests of at least the threshold, and its memory behaves as pinned memory. PyTorch's host statistics count it, every
byte once (I8); empty_cache unpins it."""

import random

import pinbuddy
import pytest
from conftest import BLOCK_MB, BLOCKS, MIB, THRESHOLD_MB, counts_active
from program import engine_segment
from release import from_minor, host_stats
from table import answers


@pytest.mark.skipif(from_minor(11), reason="torch has plans of device memory from 2.11 on")
def test_where_device_memory_has_no_plan_a_line_says_so(run, plan):
    (warning,) = run("torch.empty(MIB, device='cuda')", BUDDY_DEVICE_PLAN=str(plan)).warnings
    assert "BUDDY_DEVICE_PLAN and BUDDY_DEVICE_TRACE have no effect" in warning and "older than 2.11" in warning
    assert not plan.exists()


def test_the_threshold_is_the_smallest_request_of_the_engine(torch, pinned):
    before = pinbuddy.stats()["engine"]["hits"]
    tensor = pinned(THRESHOLD_MB * MIB)
    assert tensor.is_pinned() and engine_segment(tensor) is not None
    assert engine_segment(pinned(THRESHOLD_MB * MIB - 1)) is None
    assert pinbuddy.stats()["engine"]["hits"] == before + 1


def test_blocks_fit_exactly_and_those_that_are_freed_merge_and_serve_again_without_a_pin(torch, pinned):
    """Stock would round each request of 9.1 MiB up to 16 MiB."""
    def fill(size):
        tensors = [pinned(size) for _ in range(BLOCKS * (BLOCK_MB * MIB // size))]
        engine = pinbuddy.stats()["engine"]
        assert engine["pinned_bytes"]["current"] == BLOCKS * BLOCK_MB * MIB
        assert engine["active_bytes"]["current"] - size * len(tensors) < 4096 * len(tensors)

    pinbuddy.warm_up(wait=True)
    fill(BLOCK_MB * MIB)
    calls = host_stats()["num_host_alloc"]
    for size in (4 * MIB, 16 * MIB, 9 * MIB + 100_000, 3 * MIB + 4096, BLOCK_MB * MIB):
        fill(size)
    assert host_stats()["num_host_alloc"] == calls


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


@counts_active
def test_host_memory_stats_count_what_is_pinned_and_what_is_live(torch, pinned):
    pinbuddy.warm_up(wait=True)
    blocks = len(pinbuddy.stats()["segments"])
    tensor = pinned(8 * MIB + 1)
    stats = host_stats()
    assert stats["allocated_bytes.current"] == blocks * BLOCK_MB * MIB
    assert (stats["active_bytes.current"], stats["active_requests.current"]) == (8 * MIB + 4096, 1)
    assert stats["num_host_alloc"] == stats["host_alloc_time.count"] == blocks
    del tensor
    assert host_stats()["active_bytes.current"] == 0


test_what_is_counted = answers({
    "threshold zero serves every request": ("""
        kept = [torch.empty(n, dtype=torch.uint8, pin_memory=True) for n in (1, 4095, 4096, 4097)]
        engine = pinbuddy.stats()["engine"]
        answer(engine["hits"], engine["active_bytes"]["current"])
    """, [4, 5 * 4096], {"BUDDY_BLOCK_SIZE_MB": 16, "BUDDY_THRESHOLD_MB": 0, "BUDDY_WARMUP": "off"}),
    # Its own region, three segments, and a region above a segment: 266 MiB at one second per GiB.
    "the warm-up, pin by pin": ("""
        kept = pinned(4)
        pinbuddy.warm_up(wait=True)
        pinned(70)
        torch._C._host_emptyCache()
        stats = host_stats()
        simulated = sim()
        answer(
            stats["num_host_alloc"] == simulated["pins"] == stats["host_alloc_time.count"],
            stats["num_host_free"] == simulated["unpins"] == stats["host_free_time.count"],
            stats["allocated_bytes.current"] == block_bytes(simulated),
            0 <= simulated["pinned_peak_bytes"] - stats["allocated_bytes.peak"] <= 4096 * simulated["pins"],
            simulated["pins"],
            stats["host_alloc_time.total"] / 1e6 > 0.25,
        )
    """, [*[True] * 4, 5, True], {"BUDDY_BLOCK_SIZE_MB": 64, "BUDDY_BLOCK_COUNT": 4, "PINBUDDY_SIM_PIN_MS_PER_GB": 1000}),
    "peaks of different moments are not added": ("""
        torch.cuda.init()
        kept = [pinned(64) for _ in range(4)]
        del kept
        torch._C._host_emptyCache()
        def peaks():
            stats = host_stats()
            return stats["allocated_bytes.peak"] >> 20, stats["allocations.peak"]
        first = peaks()
        kept = [pinned(1) for _ in range(200)]
        second = peaks()
        torch.cuda.reset_peak_host_memory_stats()
        answer(first, second, peaks())
    """, [[256, 4], [256, 200], [200, 200]], {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"}),
})
