"""Pins ahead as the settings say, and releases it; see measure_pins.py."""

import time


def turn() -> dict:
    """Seconds per GiB to pin the blocks, and their pages."""
    import pinbuddy

    start = time.perf_counter()
    pinbuddy.warm_up(wait=True)
    taken = time.perf_counter() - start
    stats = pinbuddy.stats()
    segments = stats["segments"]
    pinned = sum(it["bytes"] for it in segments)
    pinbuddy.empty_cache()
    if pinned < wanted():
        raise RuntimeError(f"{pinned >> 20} MiB were pinned: {stats['warm_up']} {stats['budget']}")
    return {
        "s_per_gib": taken / (pinned / (1 << 30)),
        "pages": sorted({str(it["page_bytes"]) for it in segments}),
        "huge": sum(it["huge_bytes"] or 0 for it in segments) / pinned,
    }


def wanted() -> int:
    """Bytes that the settings have pinned ahead."""
    import pinbuddy

    config = pinbuddy.config()
    size, count = (config[f"BUDDY_BLOCK_{it}"]["value"] for it in ("SIZE_MB", "COUNT"))
    return (int(size) << 20) * int(count)
