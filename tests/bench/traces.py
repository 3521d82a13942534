"""Traces of requests: generated workloads, in the binary form that the harness reads (replay.cpp)."""

import json
import re
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

from harness import Machine, output
from results import Failed

# What is drawn at random: in the first run, and in second ones. A plan of the very same requests would be no wonder.
SEED, OTHER_SEEDS = 1, (2, 3, 4, 5)
OPS = {"alloc": 0, "free": 1, "event": 2, "clear": 3, "iter": 4}


class Workload(NamedTuple):
    """A workload of `pinbuddy trace`."""

    name: str
    steps: int
    vary: bool

    def second_seeds(self) -> tuple:
        return OTHER_SEEDS if self.vary else (SEED,)

    def write(self, machine: Machine, to: Path, seed: int = SEED, steps: int = 0, first: bool = False) -> int:
        """Writes all of it, or its first iteration; returns the most bytes that live at once."""
        with machine.folder() as folder:
            tool(machine, self.name, "--seed", seed, "--out", folder, *(["--steps", steps] if steps else []))
            return write_compact(folder / f"{self.name}.jsonl", to, first)


def workloads(machine: Machine) -> list[Workload]:
    rows = re.findall(r"^(\S+) +(\d+) steps, (fixed sizes|sizes vary)", tool(machine, "--list"), re.MULTILINE)
    return [Workload(name, int(steps), sizes == "sizes vary") for name, steps, sizes in rows]


def tool(machine: Machine, *words) -> str:
    return output([machine.fork / "bin/pinbuddy", "trace", *words], env=machine.environ, stderr=subprocess.PIPE)


def write_compact(source: Path, to: Path, first: bool) -> int:
    """Lines of JSON as records of 24 bytes. A block's number is the place that it takes among those that live."""
    events, live, vacant, slots, now, peak = bytearray(), {}, [], 0, 0, 0
    for number, line in enumerate(source.open(), 1):
        event = json.loads(line)
        op = OPS.get(event.get("op"))
        if op is None:
            continue
        slot = size = 0
        if op == 0:
            if event["id"] in live:
                raise Failed(f"{source}:{number}: block {event['id']} lives already")
            size = event["bytes"]
            slot = vacant.pop() if vacant else slots
            slots = max(slots, slot + 1)
            live[event["id"]] = slot, size
            now += size
            peak = max(peak, now)
        elif op in (1, 2):
            if event["id"] not in live:
                raise Failed(f"{source}:{number}: block {event['id']} does not live; is the trace whole?")
            slot, freed = live[event["id"]]
            if op == 1:
                del live[event["id"]]
                vacant.append(slot)
                now -= freed
        # PyTorch's pool has 32 streams; higher numbers share them.
        events += struct.pack("<QQIHBB", event["t"], size, slot, event.get("stream", 0) % 32, op, 0)
        if first and op == OPS["iter"]:
            break
    to.write_bytes(b"PBTRACE1" + struct.pack("<QQ", max(1, slots), len(events) // 24) + events)
    return peak
