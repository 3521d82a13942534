"""Where pinned memory runs short, the error says how much, `pinbuddy explain` what to do, and `pinbuddy top` who has the rest.

    python examples/refused.py     # asks for more than its address space has, which harms nobody, beside stock
"""

import json
import os
import resource
import subprocess
import sys

from beside import MIB, STOCK, figures, require, run

# MiB that the program holds, that it may still map, and that it asks for.
HELD, ROOM, TOO_MUCH = 64, 1 << 10, 4 << 10


def measure() -> dict:
    import torch

    held = torch.empty(HELD * MIB, dtype=torch.uint8, pin_memory=True)
    with open("/proc/self/statm") as pages:
        used = int(pages.read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM * MIB, limits[1]))
    said = ""
    try:
        torch.empty(TOO_MUCH * MIB, dtype=torch.uint8, pin_memory=True)
    except RuntimeError as error:
        lines = str(error).splitlines()
        said = "\n".join([it.strip() for it in lines if "pinbuddy: " in it] or lines[:1])
    resource.setrlimit(resource.RLIMIT_AS, limits)
    others = json.loads(command("top", "--all", "--json"))["others"]["processes"] if "BUDDY_DISABLE" not in os.environ else []
    del held
    return {"said": said, "own": [it["pinbuddy_bytes"] // MIB for it in others if it["pid"] == os.getpid()]}


def command(*words: str) -> str:
    # Its exit status says whether a page is shown (BUDDY_LIVE=1), not whether it found anything.
    return subprocess.run([sys.executable, "-m", "pinbuddy", *words], stdout=subprocess.PIPE, text=True).stdout


def compare() -> list[str]:
    stock, ours = figures(__file__, **STOCK), figures(__file__, BUDDY_GROWTH="exact", BUDDY_WARMUP="off")
    if not ours["said"]:
        return ["This driver has reserved its addresses before: nothing was refused."]
    explained = command("explain", ours["said"])
    require("GiB" in ours["said"] and "GiB" not in stock["said"], "numbers in pinbuddy's error, and none in stock's", [stock, ours])
    require("was refused" in explained, "advice", explained)
    require(ours["own"] == [HELD], f"the {HELD} MiB of this process among what is held", ours)
    return ["with stock:", stock["said"], "with pinbuddy:", ours["said"], "pinbuddy explain:", explained]


if __name__ == "__main__":
    run(measure, compare)
