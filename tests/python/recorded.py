"""Reads a recorded trace, and checks that it makes sense."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest


def read(path: Path, whole: bool = True, waits: bool = False) -> tuple[dict, list[dict]]:
    """The header and the events, those of waits for the driver only if they are asked for: how a machine pins decides on them.
    Checks that they make sense in their order, as the crate `trace` does."""
    lines = path.read_text().split("\n")
    if whole:
        assert lines[-1] == "", "the last line has an end"
    header, *events = [json.loads(line) for line in lines[:-1]]
    assert header["format"] == "pinbuddy-trace" and header["version"] == 6 and header["unit"] == "ns"
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
            case "wait":
                # It is over by then.
                assert 0 < event["took"] <= at
                assert "id" not in event or state[event["id"]] == "live"
            case other:
                assert other in ("clear", "iter", "lost", "node", "segment_alloc", "segment_free")
    return header, [it for it in events if waits or it["op"] != "wait"]


def waits(events: list[dict]) -> list[tuple[int | None, float]]:
    """Of each wait for the driver: how many MiB were asked for, if it was in a request, and how many milliseconds."""
    sizes = {it["id"]: it["bytes"] >> 20 for it in events if it["op"] == "alloc"}
    return [(sizes.get(it.get("id")), it["took"] / 1e6) for it in events if it["op"] == "wait"]


def ops(events: list[dict], *fields: str) -> list[tuple]:
    """Each event as its op and these of its fields."""
    return [(it["op"], *(it[field] for field in fields if field in it)) for it in events]


class Traced(NamedTuple):
    header: dict
    events: list[dict]
    outcome: Any
    file: Path


@pytest.fixture
def traced(run, tmp_path):
    """``traced(program, **settings)``: runs a program, and reads its trace; with ``device`` that of device memory."""

    def traced(program: str, device: bool = False, whole: bool = True, waits: bool = False, **settings) -> Traced:
        file = tmp_path / "trace.jsonl"
        name = "BUDDY_DEVICE_TRACE" if device else "BUDDY_TRACE"
        outcome = run(program, check=whole, **settings, **{name: str(file)})
        return Traced(*read(file, whole=whole, waits=waits), outcome, file)

    return traced
