"""Reads a recorded trace, and checks that it makes sense."""

import json
from pathlib import Path


def read(path: Path, whole: bool = True) -> tuple[dict, list[dict]]:
    """The header and the events. Checks that they make sense in their order, as the crate `trace` does."""
    lines = path.read_text().split("\n")
    if whole:
        assert lines[-1] == "", "the last line has an end"
    header, *events = [json.loads(line) for line in lines[:-1]]
    assert header["format"] == "pinbuddy-trace" and header["version"] == 3 and header["unit"] == "ns"
    state, used, at, ids = {}, set(), 0, 0
    for event in events:
        assert event["t"] >= at, event
        at = event["t"]
        match event["op"]:
            case "alloc":
                ids += 1
                assert event["id"] == ids and event["bytes"] > 0
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
                assert other in ("clear", "iter", "lost")
    return header, events
