"""Jobs that a cluster starts again and again, with `BUDDY_PLAN=auto` for all of them: `restarts.py OUT [--quick]`.

    cargo xtask sim -- "$(cargo xtask venv)/bin/python" tests/programs/restarts.py docs/results/DATE-restarts.json

Each start is of `restarted.py`, once with stock, once with nothing set and once with `auto`, whose folder all starts of a job share.
Writes what was pinned at most over what was in use at most, the pins, and the seconds that the program waited for memory: of each start,
and of all but those that were a key's first. `tests/bench/plots.py` draws what it writes.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).with_name("restarted.py")
WAYS = {"stock": {"BUDDY_DISABLE": "1"}, "pinbuddy": {}, "pinbuddy-plan": {"BUDDY_PLAN": "auto"}}
# Drawn: the job whose plan misfits most often.
DRAWN = "preempted, other batches"


def jobs() -> dict[str, list[tuple[list[str], dict[str, str]]]]:
    """By name: the arguments and variables of each start. Draws are of one seed."""
    draw = random.Random(181094)
    lengths = [{"STEPS": str(draw.randint(4, 24))} for _ in range(20)]
    grid = [["--batch", batch, "--lr", rate] for rate in ("1e-4", "3e-4", "1e-3") for batch in ("8", "16")]
    return {
        "preempted, other lengths": [([], it) for it in lengths],
        "preempted, sizes vary": [(["--vary", "--seed", str(number)], it) for number, it in enumerate(lengths)],
        "preempted, other batches": [([], it | {"BATCH": draw.choice(("6", "8", "12"))}) for it in lengths],
        "a sweep, twice": [(it, {}) for it in grid * 2],
        "elastic": [([], {"WORLD_SIZE": size, "RANK": "0", "BATCH": str(96 // int(size))}) for size in ("8", "16", "8", "4", "16", "8", "4", "4")],
        "two programs of one name": [(["--batch", "8"], {"OTHER": other}) for other in "01" * 4],
    }


def start(arguments: list[str], variables: dict[str, str], folder: Path) -> dict:
    """One start; OTHER has the program in another folder, with another text and other sizes."""
    program = PROGRAM
    if variables.get("OTHER", "0") != "0":
        program = folder / "other" / PROGRAM.name
        program.parent.mkdir(exist_ok=True)
        program.write_text(PROGRAM.read_text().replace("(1024, 1024, 3072)", "(4096, 512, 768)"))
    own = {key: value for key, value in os.environ.items() if not key.startswith("BUDDY_")}
    own |= {"PYTHONPATH": str(PROGRAM.parent), "BUDDY_PLAN_DIR": str(folder / "plans")} | variables
    done = subprocess.run([sys.executable, str(program), *arguments], env=own, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise SystemExit(f"{program.name} {arguments} with {variables} ends with {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(quick: bool, say) -> dict:
    """By job and way, a list of figures by start."""
    figures = {}
    for name, starts in jobs().items():
        figures[name] = {way: [] for way in WAYS}
        with tempfile.TemporaryDirectory() as folder:
            for number, (arguments, variables) in enumerate(starts[:1] * 2 if quick else starts, 1):
                for way, settings in WAYS.items():
                    it = start(arguments, variables | settings, Path(folder))
                    figures[name][way].append(it | {"over_live": it["pinned"] / it["live"]})
                say(f"{name}: start {number}")
    return figures


def again(job: dict[str, list[dict]], way: str) -> dict[str, float]:
    """Of the starts that found a plan."""
    those = [it for it, kept in zip(job[way], job["pinbuddy-plan"]) if kept["state"] == "used"]
    return {
        "starts": len(those),
        "over_live": statistics.median(it["over_live"] for it in those),
        "most_over_live": max(it["over_live"] for it in those),
        "pins": statistics.mean(it["pins"] for it in those),
        "waited_ms": statistics.mean(it["waited_s"] for it in those) * 1000,
    }


def chart(file: str, title: str, y: str, job: dict[str, list[dict]], of) -> dict:
    series = {way: [[number, of(it)] for number, it in enumerate(starts, 1)] for way, starts in job.items()}
    return {"file": file, "title": title, "x": "start", "y": y, "series": series}


def written(figures: dict) -> dict:
    drawn = figures[DRAWN]
    return {
        "machine": platform.machine(),
        "again": {name: {way: again(job, way) for way in WAYS} for name, job in figures.items()},
        "restarts": figures,
        "note": "simulated, no GPU",
        "charts": [
            chart("waited", f"A job that is {DRAWN}", "ms in which the program waited for memory", drawn, lambda it: it["waited_s"] * 1000),
            chart("pinned", f"A job that is {DRAWN}", "pinned at most over in use at most", drawn, lambda it: it["over_live"]),
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--quick", action="store_true", help="each job's first start, twice")
    asked = parser.parse_args()
    figures = measure(asked.quick, lambda line: print(line, file=sys.stderr, flush=True))
    asked.out.write_text(json.dumps(written(figures)) + "\n")


if __name__ == "__main__":
    main()
