"""Freed blocks that are cached whole for the next request of their size look idle: they cost no segment, and the
statistics' totals are as if nothing were cached."""

from concurrent.futures import ThreadPoolExecutor

import pinbuddy
import pytest
from conftest import BLOCK_MB, BLOCKS, MIB, counts_active
from program import engine_segment
from release import host_stats


def engine():
    return pinbuddy.stats()["engine"]


def in_a_thread(work):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


@counts_active
@pytest.mark.parametrize("size", [64 * 1024, 8 * MIB])
def test_every_request_counts_whether_a_cached_block_served_it_or_not(torch, pinned, size):
    for _ in range(100):
        pinned(size)
    stats = host_stats()
    assert stats["active_requests.allocated"] == stats["active_requests.freed"] == 100
    assert stats["active_bytes.allocated"] == stats["active_bytes.freed"] == 100 * size
    assert stats["active_bytes.current"] == 0
    torch.cuda.reset_accumulated_host_memory_stats()
    assert host_stats()["active_bytes.allocated"] == 0


@counts_active
def test_a_peak_is_at_least_what_was_live_at_once_and_counts_what_was_cached(torch, pinned):
    """Stock's peak is the sum of its buckets' peaks: 24 MiB here."""
    for _ in range(2):
        pinned(8 * MIB), pinned(12 * MIB)
    torch.cuda.reset_peak_host_memory_stats()
    for _ in range(3):
        pinned(8 * MIB)
        pinned(12 * MIB)
    assert host_stats()["active_bytes.peak"] in (12 * MIB, 20 * MIB)
    pinned(8 * MIB), pinned(12 * MIB)
    pinned(8 * MIB)
    assert host_stats()["active_bytes.peak"] == 20 * MIB


def test_the_peak_counts_blocks_that_wait_for_a_stream_once(torch, pinned):
    torch.cuda.reset_peak_host_memory_stats()
    for _ in range(30):
        pinned(8 * MIB).to("cuda", non_blocking=True)
        torch.cuda.synchronize()
    stats = engine()
    assert stats["active_bytes"]["peak"] == 8 * MIB
    # The last event is queried at the next request.
    assert stats["active_bytes"]["current"] == stats["pending_bytes"]["current"] == 8 * MIB
    assert stats["active_bytes"]["allocated"] - stats["active_bytes"]["freed"] == 8 * MIB


def test_no_pin_while_another_thread_keeps_what_is_needed(torch, pinned):
    pinbuddy.warm_up(wait=True)
    whole = [pinned(BLOCK_MB * MIB) for _ in range(BLOCKS)]
    calls = host_stats()["num_host_alloc"]
    del whole
    # The same size, and a size for which everything has to be merged.
    in_a_thread(lambda: [pinned(BLOCK_MB * MIB) for _ in range(BLOCKS)] == [])
    in_a_thread(lambda: [pinned(BLOCK_MB * MIB // 2) for _ in range(2 * BLOCKS)] == [])
    assert host_stats()["num_host_alloc"] == calls


def test_below_the_threshold_nothing_is_pinned_while_a_cached_block_would_do(torch, pinned):
    """Sizes of every power of two, with a dozen blocks of another size freed after each."""
    sizes = [1 << power for power in range(8, 20)]
    for size in sizes:
        [pinned(size) for _ in range(12)]
    calls = host_stats()["num_host_alloc"]
    for lower in sizes:
        for upper in sizes:
            pinned(lower)
            [pinned(upper) for _ in range(12)]
            pinned(lower)
    in_a_thread(lambda: [pinned(size).data_ptr() for size in sizes])
    assert host_stats()["num_host_alloc"] == calls


def test_sizes_that_nobody_asks_for_any_more_do_not_keep_others_from_being_cached(torch, pinned):
    """A full cache is flushed: the next requests get the same block again and again."""
    [pinned(MIB + 4096) for _ in range(140)]
    assert len({pinned(2 * MIB).data_ptr() for _ in range(3)}) == 1
    # No old block is cached: all memory is merged with the unused part.
    pinned(2 * MIB)
    assert engine()["active_blocks"]["current"] == 0
    held = [pinned(BLOCK_MB * MIB) for _ in range(BLOCKS)]
    assert all(engine_segment(block) for block in held)


def test_a_block_that_another_thread_frees_serves_its_own(torch, pinned):
    """One thread allocates and another frees, as with a DataLoader's pinning thread."""
    seen = set()
    for _ in range(20):
        kept = in_a_thread(lambda: [pinned(8 * MIB)])
        seen.add(kept[0].data_ptr())
        del kept
    assert len(seen) == 1


def test_sizes_that_alternate_are_all_cached_in_one_segment_and_listed_as_free(torch, pinned):
    pinbuddy.warm_up(wait=True)
    sizes = [5 * MIB, 8 * MIB, 12 * MIB, 9 * MIB + 4096]
    for _ in range(3):
        addresses = [pinned(size).data_ptr() for size in sizes]
    assert [pinned(size).data_ptr() for size in sizes] == addresses
    assert len(set(addresses)) == len(sizes)
    assert [block for segment in pinbuddy.segments() for block in segment["blocks"]] == []
    used = pinned(sizes[0])
    idle = [it for it in pinbuddy.stats()["segments"] if it["kind"] == "idle"]
    assert engine_segment(used) and len(idle) == BLOCKS - 1


