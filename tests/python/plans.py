"""Plan files as tests need them, and the programs that most tests of plans run."""

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


# Trains, with pinned memory: no block overlaps another one, and each has a mark of its own, which is looked at before it is freed.
#
# STEPS: what is done between iterations. CHANGE: the part of requests that have another length, drawn by SEED.
TRAINING = """
    change = float(os.environ.get("CHANGE", 0))
    steps = os.environ.get("STEPS", "").split()
    draw = random.Random(7)
    differ = random.Random(int(os.environ.get("SEED", 1)))
    SIZES = [draw.randrange(MIB + 1, 6 * MIB) for _ in range(20)]
    PAGE = 4096
    marks = {mark: torch.full((PAGE,), mark, dtype=torch.uint8) for mark in range(1, 200)}
    mark = asked = live_bytes = largest = 0
    # Where blocks begin, and where they end.
    ends = {}

    def parts(tensor):
        # A byte of each page, and the last. The simulator runs no kernels, which would pick them from device memory: there it is the first page.
        return tensor[:PAGE] if tensor.is_cuda else tensor[::PAGE], tensor[-1:]

    class Block:
        def __init__(self, size):
            global mark, asked, live_bytes, largest
            mark = mark % 199 + 1
            asked += 1
            self.mark = mark
            self.tensor = torch.empty(size, dtype=torch.uint8, pin_memory=True)
            live_bytes += -(-size // PAGE) * PAGE
            largest = max(largest, live_bytes)
            for it in parts(self.tensor):
                it.copy_(marks[mark][: len(it)])
            begin = self.tensor.data_ptr()
            assert all(end <= begin or begin + size <= at for at, end in ends.items()), "it lies in another block"
            ends[begin] = begin + size

        def check(self):
            # Once, at its end.
            global live_bytes
            live_bytes -= -(-self.tensor.numel() // PAGE) * PAGE
            del ends[self.tensor.data_ptr()]
            self.tensor[:PAGE].to("cuda", non_blocking=True)
            torch.cuda.current_stream().synchronize()
            for it in parts(self.tensor):
                assert bool((it.cpu() == self.mark).all()), "somebody else has written to it"

    def ask(size):
        if differ.random() < change:
            size = differ.randrange(MIB + 1, 6 * MIB)
        return Block(size)

    def forward(scale=1.0):
        live = []
        for at, size in enumerate(SIZES):
            live.append(ask(int(size * scale)))
            if at % 3 == 2:
                live.pop(0).check()
        while live:
            live.pop().check()

    kept = [Block(3 * MIB), Block(5 * MIB)]
    reserved = []
    for step in range(12):
        forward()
        if step == 0:
            kept += [Block(4 * MIB) for _ in range(3)]
        if "mark" in steps:
            pinbuddy.iteration()
        if "evaluation" in steps and step == 6:
            with torch.no_grad():
                forward(0.5)
                forward(0.5)
        if "shape" in steps and step == 6:
            forward(1.3)
        if "die" in steps and step == 11:
            until(lambda: forward() or os.path.exists(os.environ["BUDDY_PLAN"]))
            os.kill(os.getpid(), 9)
        reserved.append(torch.cuda.memory_reserved())
    for block in kept:
        block.check()
    torch.cuda.synchronize()
    stats, ours, snapshot = torch.cuda.memory_stats(), pinbuddy.stats(), torch.cuda.memory_snapshot()
    engine = ours["engine"]
    print(json.dumps({
        "plan": ours["plan"], "pinned": engine["pinned_bytes"]["peak"], "pins": engine["segments"]["allocated"],
        "misses": engine["misses"], "hits": engine["hits"], "largest": largest,
        "device": ours["device"], "asked": asked, "reserved": max(reserved),
        "kept": sum(it.tensor.numel() for it in kept), "allocated": torch.cuda.memory_allocated(),
        "stats": {name: value for name, value in stats.items() if ".all." in name or ".large_pool." in name},
        "segments": sum(it["total_size"] for it in snapshot),
        "blocks": [[b["state"], b["size"], b["requested_size"]] for it in snapshot for b in it["blocks"]],
    }))
"""

# Asks for SIZES (MiB) in each of STEPS steps; LIVE of them live beside one. Says on standard error when it begins.
LOOP = """
    import json, os, sys, torch, pinbuddy
    print("the program begins", file=sys.stderr, flush=True)
    torch.cuda.init()
    kind = dict(device="cuda") if os.environ.get("KIND") == "device" else dict(pin_memory=True)
    sizes = json.loads(os.environ["SIZES"])
    live = []
    for step in range(int(os.environ["STEPS"])):
        for mib in sizes:
            live.append(torch.empty(int(mib * (1 << 20)), dtype=torch.uint8, **kind))
            if len(live) > int(os.environ.get("LIVE", 2)):
                live.pop(0)
    print(json.dumps(pinbuddy.stats()["auto"]))
"""
