"""Runs each work with stock, stock tuned, nothing set and with settings, in turns, and writes what each gives: `measure_works.py OUT`.

    cargo xtask sim -- "$(cargo xtask venv)/bin/python" tests/programs/measure_works.py docs/results/DATE-works.json

Of each setting, the medians of the runs of: what is pinned at most over what was requested and lived at once; how many requests
waited for the driver; and for how long its calls kept the program's threads, in ms. With pinbuddy the last two are the waits of
a recorded trace, where what is pinned ahead is none; stock calls the driver in the request each time, so they are its calls.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER.parent / "bench"))
import harness  # noqa: E402

STOCK = {"BUDDY_DISABLE": "1"}
TUNED = STOCK | harness.settings("stock-tuned", counted=False)
# What docs/settings.md has beside stock and the defaults, for every work.
PLAN = {"BUDDY_PLAN": "run.{rank}.plan"}
EXACT = {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"}


def fixed(blocks: int, megabytes: int) -> dict[str, str]:
    """So much is pinned by the first request, where a plan cannot be kept."""
    return {"BUDDY_BLOCK_COUNT": str(blocks), "BUDDY_BLOCK_SIZE_MB": str(megabytes), "BUDDY_WARMUP": "sync"}


ALL_SIZES = {"BUDDY_THRESHOLD_MB": "0"}
WORKS = {
    "loader": {"plan": PLAN, "exact": EXACT, "fixed": fixed(1, 192)},
    "activations": {"plan": PLAN, "exact": EXACT, "all sizes": ALL_SIZES},
    "optimizer": {"plan": PLAN, "exact": EXACT, "all sizes": ALL_SIZES},
    "kv_cache": {"plan": PLAN, "exact": EXACT, "fixed": fixed(2, 256)},
    "checkpoint": {"plan": PLAN, "exact": EXACT, "all sizes": ALL_SIZES},
    "lengths": {"plan": PLAN, "exact": EXACT, "fixed": fixed(1, 256)},
    "ranks": {"plan": PLAN, "exact": EXACT, "all sizes": ALL_SIZES},
}
RANKS = {"ranks": 2}
# What the program is told beside its own sizes: images as many as in the committed run, which nothing decodes.
SIZES = {"loader": ["works"]}


# What PyTorch says where one of its threads meets the interpreter's end: one of twenty runs of `activations`, with stock as
# well, on a busy machine.
ENDS_BADLY = "terminate called without an active exception"
TRIES = 4


def start(name: str, settings: dict[str, str], folder: Path, quick: bool) -> list[dict]:
    """A run of a work in a folder: what each of its ranks reports."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("BUDDY_")}
    ranks = RANKS.get(name, 1)
    own |= {"PINBUDDY_SIM_DEVICES": str(ranks), "OMP_NUM_THREADS": "1"} if ranks > 1 else {}
    command = [os.environ.get("PYTHON_EXEC", sys.executable)]  # torchrun's variable
    if ranks > 1:
        command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command += [str(FOLDER / f"{name}.py"), *SIZES.get(name, []), *(["--quick"] if quick else [])]
    for _ in range(TRIES):
        done = subprocess.run(command, cwd=folder, env=own | settings, capture_output=True, text=True, timeout=600)
        if ENDS_BADLY not in done.stderr:
            break
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or len(lines) != ranks:
        raise SystemExit(f"{name} with {settings} ends with {done.returncode}\n{done.stdout}{done.stderr}")
    return [json.loads(line) for line in lines]


def of_trace(path: Path) -> dict[str, float]:
    """What lived at once at most, how many requests waited, and how long all waits took."""
    live = peak = requests = 0
    took, waited, sizes = 0, set(), {}
    for line in path.read_text().splitlines()[1:]:
        event = json.loads(line)
        if event["op"] == "alloc":
            requests += 1
            sizes[event["id"]] = event["bytes"]
            live += event["bytes"]
            peak = max(peak, live)
        elif event["op"] == "free":
            live -= sizes[event["id"]]
        elif event["op"] == "wait":
            took += event["took"]
            waited |= {event["id"]} if "id" in event else set()
    return {"live": peak, "requests": requests, "waits": len(waited), "ms": took / 1e6}


def run(name: str, settings: dict[str, str], folder: Path, quick: bool = False) -> dict[str, float]:
    """The figures of one run; of several ranks, their sums."""
    for old in folder.glob("*.jsonl"):
        old.unlink()
    reports = start(name, settings, folder, quick)
    pinned = sum(it["host_pinned"] for it in reports)
    traces = [of_trace(it) for it in folder.glob("*.jsonl")]
    if not traces:
        return {"pinned": pinned, "waits": sum(it["host_pins"] for it in reports), "ms": sum(it["host_driver_us"] for it in reports) / 1e3}
    return {"pinned": pinned} | {key: sum(it[key] for it in traces) for key in traces[0]}


def ways(name: str) -> dict[str, dict[str, str]]:
    """What a work is run with, by a short name."""
    return {"stock": STOCK, "tuned": TUNED, "nothing": {}} | WORKS[name]


def measure(name: str, rounds: int, say) -> dict:
    """Medians by setting."""
    seen: dict[str, list[dict]] = {way: [] for way in ways(name)}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(rounds):
            for way, settings in ways(name).items():
                folder = Path(scratch) / way
                folder.mkdir(exist_ok=True)
                traced = settings if "BUDDY_DISABLE" in settings else settings | {"BUDDY_TRACE": "run.{rank}.jsonl"}
                if "BUDDY_PLAN" in settings and number == 0:
                    run(name, traced, folder)  # It makes the plan.
                seen[way].append(run(name, traced, folder))
                say(f"{name} {way}: {seen[way][-1]}")
    # A DataLoader's threads decide how many batches live at once.
    live = max(it.get("live", 0) for runs in seen.values() for it in runs)
    figures = {}
    for way, runs in seen.items():
        middle = {key: statistics.median(it[key] for it in runs) for key in ("pinned", "waits", "ms")}
        figures[way] = {
            "settings": ways(name)[way],
            "over live": middle["pinned"] / live,
            "waits": middle["waits"],
            "ms": middle["ms"],
            "runs": runs,
        }
    return {"live": live, "requests": seen["nothing"][0]["requests"], "figures": figures}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS))
    options = parser.parse_args()
    import torch

    say = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    works = {name: measure(name, options.rounds, say) for name in options.works}
    machine = {"torch": torch.__version__, "cores": os.cpu_count(), "kernel": platform.release(), "rounds": options.rounds}
    options.out.write_text(json.dumps({"machine": machine, "works": works}, indent=1) + "\n")


if __name__ == "__main__":
    main()
