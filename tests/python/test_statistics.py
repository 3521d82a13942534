"""PyTorch's host statistics count engine memory, every byte once (I8); empty_cache unpins it."""

import pinbuddy
from conftest import BLOCK_MB, MIB, counts_active
from program import hold
from release import host_stats


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


def test_active_and_idle_make_up_what_is_pinned(torch, pinned):
    live, freed = pinned(8 * MIB), pinned(9 * MIB)
    hold()
    freed.to("cuda", non_blocking=True)
    del freed
    engine = pinbuddy.stats()["engine"]
    assert (engine["active_bytes"]["current"], engine["pending_bytes"]["current"]) == (17 * MIB, 9 * MIB)
    assert engine["active_bytes"]["current"] + engine["idle_bytes"] == engine["pinned_bytes"]["current"]
    assert engine["pinned_bytes"]["current"] == sum(segment["bytes"] for segment in pinbuddy.stats()["segments"])
    del live


def test_the_warm_up_is_counted_pin_by_pin(run):
    *equal, pins, spent = run("""
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
            stats["host_alloc_time.total"] / 1e6,
        )
        """, BUDDY_BLOCK_SIZE_MB=64, BUDDY_BLOCK_COUNT=4, PINBUDDY_SIM_PIN_MS_PER_GB=1000).value
    assert equal == [True] * 4
    # Its own region, three segments, and a region above a segment: 266 MiB at one second per GiB.
    assert pins == 5 and spent > 0.25


def test_peaks_of_different_moments_are_not_added(run):
    large, small, again = run("""
        from program import *
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
        """, BUDDY_WARMUP="off", BUDDY_GROWTH="exact").value
    assert large[0] == small[0] == 256 and large[1] == 4
    assert small[1] == again[1] == 200 and again[0] == 200
