"""Plan files as tests need them, and the program that most tests of plans run."""

import json
import zlib
from pathlib import Path

MIB = 1 << 20


def write(path: Path, regions: list[int], slots: list[list[int]], periods: list[list[int]], **changed) -> None:
    """A plan whose lanes have these periods and no prologue."""
    plan = {
        "format": "pinbuddy-plan", "version": 1, "torch": __import__("torch").__version__.split("+")[0],
        "world_size": 1, "rank": 0, "threshold": 4 * MIB, "regions": regions, "slots": slots,
        "lanes": [{"prologue": [], "period": period} for period in periods],
        "facts": dict.fromkeys(("requests", "iterations", "peak", "lower_bound"), 0)
        | dict.fromkeys(("gap_percent", "efficiency", "seconds"), 0.0),
    } | changed
    body = json.dumps(plan, separators=(",", ":"))
    path.write_text(f'{body[:-1]},"checksum":{zlib.crc32(body.encode())}}}\n')


# The plans that recorded runs have written, by program and settings: tests need a plan, and not its making.
written: dict[str, tuple[str, object]] = {}


def recorded(run, path: Path, program: str, variable: str = "BUDDY_PLAN", **variables) -> object:
    """Puts the plan of a recorded run at ``path``; the run's answer."""
    key = json.dumps([program, variable, variables])
    if key not in written:
        answer = run(program, **{variable: str(path)}, **variables).quiet.value
        written[key] = path.read_text(), answer
    path.write_text(written[key][0])
    return written[key][1]


# Trains: every block has a mark of its own, which is looked at before it is freed. It is in one byte of each page, and in the last:
# blocks begin with a page, so two that overlap share one of these.
#
# STEPS: what is done between iterations.
TRAINING = """
    steps = os.environ.get("STEPS", "").split()
    draw = random.Random(5)
    SIZES = [draw.randrange(MIB, 5 * MIB) for _ in range(24)]
    mark = 0
    largest = live_bytes = 0

    def ask(size):
        global mark, largest, live_bytes
        mark = mark % 250 + 1
        tensor = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        tensor[::4096] = tensor[-1] = mark
        live_bytes += (size + 4095) // 4096 * 4096
        largest = max(largest, live_bytes)
        return tensor, mark

    def end(block):
        global live_bytes
        tensor, mark = block
        assert bool((tensor[::4096] == mark).all()) and tensor[-1] == mark, "somebody else has written to it"
        live_bytes -= (tensor.numel() + 4095) // 4096 * 4096

    kept = [ask(3 * MIB), ask(2 * MIB + 5)]
    for iteration in range(12):
        live = []
        for size in SIZES:
            live.append(ask(size))
            while len(live) > 5:
                block = live.pop(0)
                copy = block[0][:4096].to("cuda", non_blocking=True)
                torch.cuda.current_stream().synchronize()
                end(block)
                del block
        for block in live:
            end(block)
        del block
        live.clear()
        if "mark" in steps:
            pinbuddy.iteration()
        if "die" in steps and iteration == 11:
            until(lambda: os.path.exists(os.environ["BUDDY_PLAN"]))
            os.kill(os.getpid(), 9)
    for block in kept:
        end(block)
    stats = pinbuddy.stats()
    engine = stats["engine"]
    print(json.dumps({
        "plan": stats["plan"], "pinned": engine["pinned_bytes"]["peak"], "pins": engine["segments"]["allocated"],
        "misses": engine["misses"], "hits": engine["hits"], "largest": largest,
    }))
"""
