"""Replays a trace on the current PyTorch, and prints what it pinned.

usage: replay.py TRACE [statistics]   (in the simulator: cargo xtask sim -- PYTHON tests/python/replay.py TRACE)

Traces are those of `pinbuddy trace`. The answer is one line of JSON: calls that pinned, and the
most bytes that were pinned and requested at one moment. The simulator is asked for the pinned bytes, which
it counts in whole pages. With `statistics` torch is asked, to the byte; that flushes the fork's cached blocks
after each request. The models of `pinbuddy simulate` are held to such answers
(rust-core/replay/src/replay/tests.rs). Uses on streams are left out: how long they take is the machine's
affair. With PINBUDDY_SIM_LOCK=0 BUDDY_BACKING=cuda no memory is touched.
"""

import ctypes
import json
import sys

import torch
from release import block_bytes, host_stats

VERSIONS = range(1, 6)


def by_simulator() -> int:
    text = ctypes.create_string_buffer(4096)
    ctypes.CDLL(None).pinbuddy_sim_stats_json(text, ctypes.c_size_t(len(text)))
    return block_bytes(json.loads(text.value))


def by_statistics() -> int:
    return host_stats()["allocated_bytes.current"]


def replay(lines, pinned_bytes) -> dict:
    torch.zeros(1, device="cuda")  # as every program does sooner or later; statistics wait for it
    blocks: dict[int, torch.Tensor] = {}
    live = largest = peak = 0
    for line in lines:
        event = json.loads(line)
        if "format" in event:
            if event["version"] not in VERSIONS:
                sys.exit(f"expected a trace of version 1 to {VERSIONS[-1]}, found version {event['version']}")
            continue
        match event["op"]:
            case "alloc":
                blocks[event["id"]] = torch.empty(event["bytes"], dtype=torch.uint8, pin_memory=True)
                live += event["bytes"]
                largest = max(largest, live)
                # Not `allocated_bytes.peak`: the peaks of the engine and of upstream are at different moments.
                peak = max(peak, pinned_bytes())
            case "free":
                live -= blocks.pop(event["id"]).numel()
            case "clear":
                torch._C._host_emptyCache()
    stats = host_stats()
    return {"pins": stats["num_host_alloc"], "unpins": stats["num_host_free"], "peak_pinned_bytes": peak, "largest_live_bytes": largest}


if __name__ == "__main__":
    with open(sys.argv[1]) as trace:
        pinned_bytes = by_statistics if "statistics" in sys.argv else by_simulator
        print(json.dumps(replay(trace, pinned_bytes)))
