"""PyTorch's host statistics count engine memory, every byte once (I8); empty_cache gives it back."""

import pinbuddy
from conftest import BLOCK_MB, MIB


def test_host_memory_stats_count_what_is_pinned_and_what_is_live(torch, pinned):
    tensor = pinned(8 * MIB + 1)
    stats = torch.cuda.host_memory_stats()
    assert stats["allocated_bytes.current"] == BLOCK_MB * MIB
    assert stats["active_bytes.current"] == 8 * MIB + 4096
    assert stats["active_requests.current"] == 1
    assert stats["num_host_alloc"] == 1
    assert stats["host_alloc_time.count"] >= 1
    del tensor
    assert torch.cuda.host_memory_stats()["active_bytes.current"] == 0


def test_live_pending_and_idle_make_up_what_is_pinned(torch, pinned):
    live, freed = pinned(8 * MIB), pinned(9 * MIB)
    torch.cuda._sleep(1_000_000_000)
    freed.to("cuda", non_blocking=True)
    del freed
    engine = pinbuddy.stats()["engine"]
    assert engine["live_bytes"]["current"] == 8 * MIB
    assert engine["pending_bytes"]["current"] == 9 * MIB
    parts = engine["live_bytes"]["current"] + engine["pending_bytes"]["current"]
    assert parts + engine["idle_bytes"] == engine["pinned_bytes"]["current"]
    assert engine["pinned_bytes"]["current"] == sum(
        segment["bytes"] for segment in pinbuddy.stats()["segments"]
    )
    del live


def test_peaks_and_totals_start_anew_when_asked(torch, pinned):
    pinned(32 * MIB)
    torch.cuda.reset_peak_host_memory_stats()
    torch.cuda.reset_accumulated_host_memory_stats()
    stats = torch.cuda.host_memory_stats()
    assert stats["active_bytes.peak"] == 0
    assert stats["active_bytes.allocated"] == 0
    assert stats["num_host_alloc"] == 0
    tensor = pinned(8 * MIB)
    stats = torch.cuda.host_memory_stats()
    assert stats["active_bytes.peak"] == stats["active_bytes.allocated"] == 8 * MIB
    del tensor


def test_empty_cache_gives_back_wholly_idle_segments_only(torch, pinned):
    kept = pinned(8 * MIB)
    pinned(BLOCK_MB * MIB)
    torch.accelerator.empty_host_cache()
    segments = pinbuddy.stats()["segments"]
    assert [it["live_bytes"] for it in segments] == [8 * MIB]
    kept.fill_(7)
    assert bool((kept == 7).all())
    again = pinned(BLOCK_MB * MIB)
    assert again.is_pinned(), "a task that runs on gets memory again"
