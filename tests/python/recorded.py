"""Reads a recorded trace, and checks that it makes sense."""

import json
from pathlib import Path


def read(path: Path, whole: bool = True) -> tuple[dict, list[dict]]:
    """The header and the events. Checks that they make sense in their order, as the crate `trace` does."""
    lines = path.read_text().split("\n")
    if whole:
        assert lines[-1] == "", "the last line has an end"
    header, *events = [json.loads(line) for line in lines[:-1]]
    assert header["format"] == "pinbuddy-trace" and header["version"] == 4 and header["unit"] == "ns"
    state, used, at, ids = {}, set(), 0, 0
    for event in events:
        assert event["t"] >= at, event
        at = event["t"]
        match event["op"]:
            case "alloc":
                # Blocks of the other memory have numbers, too.
                assert event["id"] == ids + 1 or (event["id"] > ids and "memory" in header)
                assert event["bytes"] > 0
                ids = event["id"]
                state[ids] = "live"
            case "event":
                assert state[event["id"]] == "live"
                used.add(event["id"])
            case "free":
                assert state[event["id"]] == "live"
                state[event["id"]] = "freed"
            case "safe":
                assert state[event["id"]] == "freed" and event["id"] in used
                state[event["id"]] = "safe"
            case other:
                assert other in ("clear", "iter", "lost", "segment_alloc", "segment_free")
    return header, events
