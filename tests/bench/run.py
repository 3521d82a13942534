"""`cargo xtask bench`: compares the fork with the official wheel and other allocators, in one run.

Everything that is compared runs in this run, in turns, on the same requests. docs/bench.md explains the parts.
"""

import argparse
import contextlib
import fcntl
import json
import os
import runpy
import subprocess
import sys
import venv
from datetime import datetime, timezone
from pathlib import Path

sys.dont_write_bytecode = True
import cold_start  # noqa: E402
import gpu_charts  # noqa: E402
import pairs  # noqa: E402
import replays  # noqa: E402
import scripts  # noqa: E402
import worst  # noqa: E402
from harness import SUBJECTS, Machine, cores, of_system, output, settings  # noqa: E402
from results import Failed, Results  # noqa: E402

ROOT = Path(__file__).parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
MATPLOTLIB = "matplotlib==3.10.8"

# By part: its function; whether a quick run leaves it out; whether only the simulator can run it, since it counts pins of more
# memory than there is; and what it is.
PARTS = {
    "hit": (pairs.hit, False, False, "Allocate and free of a cached block, by size, mixed, with an event; split and merge"),
    "threads": (pairs.threads, False, False, "The same on 1 to 8 threads"),
    "scaling": (pairs.scaling, False, True, "Split and merge among 100 to a million blocks"),
    "memory": (replays.memory, False, True, "What is pinned for training, serving, loading and checkpoint traces"),
    "first": (replays.first, False, False, "Time in the allocator in the first iteration of a training trace, with pages locked"),
    "plan": (replays.plan, True, True, "Second runs with BUDDY_PLAN: their first iteration, their pairs; plan/NAME is one of its workloads"),
    "device": (pairs.device, True, False, "Device memory: planned pairs, and what passes through beside a plan"),
    "trainings": (scripts.trainings, True, True, "Device memory of real trainings: what PyTorch reserves, its model, a plan"),
    "warm-up": (cold_start.warm_up, True, False, "A cold start by backing and page size"),
    "overhead": (scripts.overhead, True, False, "Requests with the engine off, and imports"),
    "worst": (worst.worst, True, True, "Cold starts, growth, clears, shortage, exits; worst/NAME is one of its programs"),
}
# Rounds, and turns of each.
EFFORTS = {"full": (7, 50), "quick": (3, 15), "smoke": (1, 3)}
SMOKE = ["hit", "threads", "plan"]


def part_or_program(text: str) -> str:
    part, _, program = text.partition("/")
    if part not in PARTS or program and part not in ("worst", "plan") or part == "worst" and program and program not in worst.NAMES:
        known = [f"worst/{it}" for it in worst.NAMES] if part == "worst" else PARTS
        raise argparse.ArgumentTypeError(f"there is no {text!r}; there are {', '.join(known)}")
    return text


def parser() -> argparse.ArgumentParser:
    it = argparse.ArgumentParser(
        prog="cargo xtask bench",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compare the fork with the official wheel and other allocators, in turns on the same requests",
        epilog="parts:\n" + "".join(f"  {name:<12}{about}\n" for name, (*_, about) in PARTS.items())
        + "\nRatios are the result; times are of one machine. Runs in the simulator without --real.")
    it.add_argument("--quick", action="store_true", help="fewer rounds and smaller workloads, for a first look")
    it.add_argument("--rounds", type=int, metavar="N", help="rounds, each with processes of its own [default: 7; 3 if quick]")
    it.add_argument("--only", type=lambda text: [part_or_program(it) for it in text.split(",")], nargs="+", metavar="PART",
                    default=[], help="only these parts [default: all; if quick, the first five]")
    it.add_argument("--json", type=Path, metavar="FILE", help="write the results and their context to FILE")
    it.add_argument("--out", type=Path, metavar="DIR", default=TARGET / "bench", help="where the plots go [default: target/bench]")
    it.add_argument("--real", action="store_true", help="use this machine's CUDA runtime and GPU instead of the simulator")
    it.add_argument("--strict", action="store_true", help="fail if a figure misses its target, for CI")
    it.add_argument("--fork", type=Path, metavar="DIR", help="use this environment with the fork, not that of `cargo xtask venv`")
    it.add_argument("--stock", type=Path, metavar="DIR", help="the same with the official wheel (`cargo xtask venv --stock`)")
    it.add_argument("--plot", type=Path, metavar="FILE", help="measure nothing; draw the plots of a GPU run's results.json")
    it.add_argument("--smoke", action="store_true", help=argparse.SUPPRESS)
    it.add_argument("--xtask", default="", help=argparse.SUPPRESS)
    return it


def environment(args: argparse.Namespace, xtask: list) -> dict:
    """The variables of all programs: one GPU, simulated without --real, and none of the caller's settings."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("BUDDY_", "PYTORCH_", "PYTHON"))}
    own["PINBUDDY_SIM_QUIET"] = "1"
    if args.real:
        return own
    lines = output([*xtask, "sim", "--", "/usr/bin/env", "-0"], env=own).split("\0")
    return dict(line.split("=", 1) for line in lines if "=" in line)


def require_gpu(machine: Machine) -> None:
    done = subprocess.run([machine.fork / "bin/pinbuddy", "doctor"], env=machine.environ, capture_output=True, text=True)
    if done.returncode:
        raise Failed(
            f"there is no GPU that programs can use here\n  found     {done.stdout.strip()}\n"
            "  expected  an NVIDIA driver that serves torch's CUDA, and a GPU\n"
            "  to do     what is missing is said above; without --real the simulator stands in for a GPU")


def machine_for(args: argparse.Namespace, xtask: list) -> Machine:
    effort = "smoke" if args.smoke else "quick" if args.quick else "full"
    rounds, turns = EFFORTS[effort]
    environ = environment(args, xtask)
    fork = args.fork or Path(output([*xtask, "venv"]).splitlines()[-1])
    stock = args.stock or Path(output([*xtask, "venv", "--stock"]).splitlines()[-1])
    for folder, option in ((fork, "--fork"), (stock, "--stock")):
        if not list(folder.glob("lib/python*/site-packages/torch/version.py")):
            raise Failed(f"{option}: {folder} is no virtual environment with torch; `cargo xtask venv` makes one")
    torch = next(stock.absolute().glob("lib/python*/site-packages/torch"))
    program = Path(output([sys.executable, ROOT / "tests/python/native.py", Path(__file__).parent, torch, "-O2"]))
    machine = Machine(fork.absolute(), stock.absolute(), program, environ, not args.real, TARGET / "bench/work", effort,
                      args.rounds or rounds, turns)
    if args.real:
        require_gpu(machine)
    return machine


def context(machine: Machine) -> dict:
    """Machine, date and versions."""
    files = [next(it.glob("lib/python*/site-packages/torch/version.py")) for it in (machine.stock, machine.fork)]
    stock, fork = (runpy.run_path(str(it))["__version__"] for it in files)
    commit = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True)
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip() or None,
        "processor": of_system("/proc/cpuinfo", "model name"),
        "cores": len(cores()),
        "memory_mib": int(of_system("/proc/meminfo", "MemTotal").split()[0]) >> 10,
        "kernel": os.uname().release,
        "load": os.getloadavg()[0],
        "cuda": "simulated" if machine.simulated else "real",
        "stock": stock,
        "fork": fork,
        "effort": machine.effort,
        "rounds": machine.rounds,
        "turns": machine.turns,
        "allocators": {it: settings(it, machine.simulated) for it in SUBJECTS},
    }


def run_part(name: str, args: argparse.Namespace, machine: Machine, results: Results) -> None:
    part, _, counts, _ = PARTS[name]
    if counts and not machine.simulated:
        results.skipped[name] = "it counts pins of more memory than there is, which only the simulator does"
        return
    chosen = [it.partition("/") for group in args.only for it in group if it.partition("/")[0] == name]
    programs = [] if any(not program for *_, program in chosen) else [program for *_, program in chosen]
    part(machine, results, *([programs] if name in ("plan", "worst") else []))


def draw(charts: list, out: Path, note: str, simulated: bool) -> None:
    """By matplotlib, in an environment of its own."""
    out.mkdir(parents=True, exist_ok=True)
    note = "\n".join([note] * bool(note) + ["simulated, no GPU"] * simulated)
    (out / "charts.json").write_text(json.dumps({"note": note, "charts": charts}))
    folder = TARGET / "plots"
    python = folder / "bin/python"
    if subprocess.run([python, "-c", "import matplotlib"], capture_output=True).returncode if python.exists() else True:
        try:
            venv.create(folder, with_pip=True, clear=True)
        except (OSError, subprocess.CalledProcessError) as why:
            raise Failed(f"no environment for plots: {why}\n  expected  python3 with venv and ensurepip\n  to do     apt-get install python3-venv") from None
        output([python, "-m", "pip", "install", "--quiet", MATPLOTLIB])
    output([python, Path(__file__).parent / "plots.py", out / "charts.json", out])
    print(f"{len(charts)} plots in {out}", file=sys.stderr)


def plot(file: Path, out: Path) -> None:
    """The plots of a GPU run."""
    try:
        found = json.loads(file.read_text())
    except ValueError as why:
        raise Failed(f"{file} is not JSON: {why}") from None
    if not (charts := gpu_charts.charts(found)):
        raise Failed(
            f"{file} has nothing to draw\n  expected  `measured` with transformer or optimizer\n"
            "  to do     ci/gpu/run.sh, without --only or with one of these")
    draw(charts, out, "", bool(found.get("simulated")))


def smoked(json_text: dict, results: Results) -> None:
    """For tests: each part measured something, and no figure is nought."""
    for key in ("hit_pair_ratio", "p99_ratio", "miss_ratio", "threads_ratio", "plan", "context"):
        if not json_text.get(key):
            raise Failed(f"the results have no {key}")
    if wrong := [it for it in results.figures if not 0 < it.value < float("inf")]:
        raise Failed(f"these figures are no positive numbers: {wrong}")


def main(args: argparse.Namespace) -> None:
    xtask = [args.xtask] if args.xtask else ["cargo", "xtask"]
    named = [it.partition("/")[0] for group in args.only for it in group]
    chosen = SMOKE if args.smoke else [it for it in PARTS if it in named or not named and not (args.quick and PARTS[it][1])]
    machine = machine_for(args, xtask)
    about = context(machine)
    print("{stock} and {fork} on {processor}, {cores} cores, Linux {kernel}, CUDA {cuda}, load {load:.1f}, {rounds} rounds\n"
          .format(**about), flush=True)
    results, failed = Results(), []
    for number, name in enumerate(chosen, 1):
        machine.say = lambda text, at=f"[{number}/{len(chosen)}] {name}": print(f"{at}: {text}", file=sys.stderr, flush=True)
        machine.say("begins")
        try:
            run_part(name, args, machine, results)
        except Failed as why:
            # The results of the other parts are still valid.
            machine.say(str(why))
            results.skipped[name] = "it failed"
            failed.append(name)
    print(results, flush=True)
    found = results.json(about)
    if args.json:
        args.json.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    if results.charts and not args.smoke:
        try:
            draw(results.charts, args.out, "lower is better", machine.simulated)
        except Failed as why:
            print(f"no plots: {why}; tests/bench/plots.py draws {args.out / 'charts.json'}", file=sys.stderr)
    if failed:
        raise Failed(f"failed: {', '.join(failed)}")
    if args.smoke:
        smoked(found, results)
    if args.strict and (results.missed() or not results.judged()):
        missed = [f"{' '.join(it.path)} {it.value:.3f}, target {it.target}" for it in results.missed()]
        raise Failed(
            f"{len(missed)} of {len(results.judged())} figures are out of bounds\n  found     " + "\n            ".join(missed)
            + "\n  expected  every target met (--strict), and at least one\n"
            "  to do     cargo xtask bench --only PART, for the part that it comes from, and look at the spread")


if __name__ == "__main__":
    arguments = parser().parse_args()
    TARGET.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        # Two runs at a time would disturb each other.
        lock = stack.enter_context((TARGET / ".pinbuddy-bench.lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another cargo xtask bench in this checkout", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            plot(arguments.plot, arguments.out) if arguments.plot else main(arguments)
        except Failed as why:
            raise SystemExit(f"error: {why}") from None
