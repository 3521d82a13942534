"""Replays a trace on the PyTorch that runs this, and says what it pinned.

usage: replay.py TRACE   (in the simulator: cargo xtask sim -- PYTHON tests/python/replay.py TRACE)

Traces are those of `cargo xtask trace`. The answer is one line of JSON: calls that pinned, and the
most bytes that were pinned and requested at one moment. The models of `cargo xtask simulate` are
held to such answers (tests/replay/src/policy/tests.rs). Uses on streams are left out: how long they
take is the machine's affair. With PINBUDDY_SIM_LOCK=0 BUDDY_BACKING=cuda no memory is touched.
"""

import json
import sys

import torch
from release import host_stats


def replay(lines) -> dict:
    torch.zeros(1, device="cuda")  # as every program does sooner or later; statistics wait for it
    blocks: dict[int, torch.Tensor] = {}
    live = largest = peak = 0
    for line in lines:
        event = json.loads(line)
        match event["op"]:
            case "alloc":
                blocks[event["id"]] = torch.empty(
                    event["bytes"], dtype=torch.uint8, pin_memory=True
                )
                live += event["bytes"]
                largest = max(largest, live)
                # Not `allocated_bytes.peak`: the engine's and upstream's are of different moments.
                peak = max(peak, host_stats()["allocated_bytes.current"])
            case "free":
                live -= blocks.pop(event["id"]).numel()
            case "clear":
                torch._C._host_emptyCache()
    stats = host_stats()
    return {
        "pins": stats["num_host_alloc"],
        "unpins": stats["num_host_free"],
        "peak_pinned_bytes": peak,
        "largest_live_bytes": largest,
    }


if __name__ == "__main__":
    with open(sys.argv[1]) as trace:
        print(json.dumps(replay(trace)))
