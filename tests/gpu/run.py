"""Runs everything that only a GPU can show, within fourteen minutes: `run.py --out DIR`, or ci/gpu/run.sh.

Each stage has a time budget; a stage that exceeds it is stopped and reported, and the others continue. results.json
is written after every stage; results.md, which is printed, at the end. Exits with 1 if a test fails that
stock passes, or if a stage does not end; with --strict also if a target is missed.
"""

import argparse
import json
import shutil
import sys
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import machine
import measure_clients
import measure_in_place
import measure_questions
import measuring
import report
import stage
import suites
import targets
import ways

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
EXPECTED = "a GPU, python3 (or PYTHON) with the torch that ci/gpu/pack.sh was told, and its pack; docs/gpu.md"
# Seconds in total; the stages get what is left when they begin.
WHOLE = 800
# Stages: what measuring.py is told to call, and seconds. Tests measure no time, so they run in parallel, for as long as the longest.
TESTS = {
    "our tests": ("suites ours", 180),
    "GPU tests": ("suites gpu", 100),
    "PyTorch C++": ("suites cpp", 100),
    "PyTorch Python": ("suites python", 120),
}
MEASUREMENTS = {
    # First, since designs depend on the answers.
    "questions": ("measure_questions measure", 60),
    "pins": ("measure_pinned pins", 70),
    "first": ("measure_pinned first", 30),
    "pairs": ("measure_pinned pairs", 20),
    "bandwidth": ("measure_pinned bandwidth", 25),
    "in place": ("measure_in_place measure", 40),
    "transformer": ("measure_steps measure transformer", 95),
    "optimizer": ("measure_steps measure optimizer", 70),
    "device": ("measure_device measure", 90),
    "clients": ("measure_clients measure", 120),
}
# A first look.
QUICK = 0.5
# For any machine, however busy: the simulator's time does not count.
SIMULATED = 10


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="half of the time, two rounds at most, simulated one")
    parser.add_argument("--simulator", action="store_true", help="CUDA is simulated: small sizes, nothing judged")
    parser.add_argument("--strict", action="store_true", help="fail where a target is missed")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where results go")
    parser.add_argument("--only", metavar="STAGE,...", help=f"of: {', '.join([*TESTS, *MEASUREMENTS])}")
    parser.add_argument("--without", metavar="STAGE,...", default="", help="all but these")
    parser.add_argument("--python", default=sys.executable, help="with the torch that the pack is for")
    parser.add_argument("--stock", metavar="PYTHON", help="with the official wheel, beside --fork: no pack")
    parser.add_argument("--fork", metavar="PYTHON", help="with a fork wheel")
    parser.add_argument("--programs", type=Path, default=ROOT / "bin", help="where compiled ones are")
    options = parser.parse_args()
    if bool(options.stock) != bool(options.fork):
        parser.error("--stock and --fork go together")
    # Absolute, since each stage runs in its own folder.
    options.out = options.out.absolute()
    options.only = options.only.split(",") if options.only else [*TESTS, *MEASUREMENTS]
    without = options.without.split(",") if options.without else []
    unknown = {*options.only, *without} - TESTS.keys() - MEASUREMENTS.keys()
    if unknown:
        parser.error(f"there is no stage {', '.join(sorted(unknown))}")
    options.only = [name for name in options.only if name not in without]
    return options


class Run:
    """The results so far, and the time that is left."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.start = time.monotonic()
        # Test stages may end at the same time.
        self.writing = threading.Lock()
        self.work = options.out / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.scale = (QUICK if options.quick else 1) * (SIMULATED if options.simulator else 1)
        of_pack = not options.fork
        self.ways = ways.of_pack(ROOT, options.python) if of_pack else ways.of_environments(options.stock, options.fork)
        self.results = {"simulated": options.simulator, "quick": options.quick, "seconds": 0.0, "machine": {}, "warnings": []}
        self.results |= {"stages": [], "tests": {}, "measured": {}, "targets": []}

    def check(self) -> list[str]:
        """Inspects the machine; returns the reasons why it is not suitable."""
        pack = ROOT / "pack.json"
        wanted = json.loads(pack.read_text())["torch"] if pack.exists() and not self.options.fork else None
        stock, ours = (machine.probe(self.ways[name]) for name in ("stock", "ours"))
        seen = machine.context() | {name: stock[name] for name in ("gpu", "gpu_mib", "gpu_free_mib", "python")}
        seen |= {"stock_torch": stock["torch"], "ours_torch": ours["torch"], "pinbuddy": ours["pinbuddy"]}
        self.results["machine"] = seen
        self.results["warnings"] = machine.warnings(seen, self.options.simulator)
        wrong = machine.complaints(stock, ours, wanted)
        simulated = "simulated" in (stock["gpu"] or "")
        if simulated != self.options.simulator and stock["gpu"]:
            wrong.append(f"the GPU is {stock['gpu']!r}: --simulator is for that, and for nothing else")
        return wrong

    def stage(self, name: str, called: str, budget: float, kind: str) -> None:
        """Runs one stage, and keeps its results however it ended."""
        left = WHOLE * self.scale - (time.monotonic() - self.start)
        seconds = min(budget * self.scale, left)
        slug = name.lower().replace(",", "").replace("+", "p").replace(" ", "-")
        described, out = self.work / f"{slug}.fixture.json", self.work / f"{slug}.json"
        if seconds < 1:
            ended = stage.Ended("stopped", 0.0, "no time was left for it")
        else:
            o = self.options
            its = measuring.Fixture(self.ways, o.simulator, o.quick, seconds - stage.GRACE, o.programs.absolute(), out)
            described.write_text(its.as_json())
            line = [o.python, str(HERE / "measuring.py"), str(described), *called.split()]
            print(f"-- {name}, {seconds:.0f} s at most", flush=True)
            ended = stage.run(line, seconds, self.work / f"{slug}.txt")
        told = {"outcome": ended.outcome, "seconds": ended.seconds, "budget_s": round(max(seconds, 0.0), 1), "detail": ended.detail}
        with self.writing:
            self.results["stages"].append({"name": name} | told)
            if out.exists():
                self.results[kind][name] = json.loads(out.read_text())
            self.write()
        print(f"   {name}: {ended.outcome} in {ended.seconds:.0f} s {ended.detail}", flush=True)

    def write(self) -> None:
        self.results["seconds"] = round(time.monotonic() - self.start, 1)
        self.results["targets"] = targets.judge(self.results)
        scratch = self.options.out / "results.json.part"
        scratch.write_text(json.dumps(self.results, indent=1) + "\n")
        scratch.rename(self.options.out / "results.json")

    def failed(self) -> list[str]:
        """Why this run is no success."""
        wrong = [f"{it['name']} {it['outcome']}" for it in self.results["stages"] if it["outcome"] != "done"]
        for suite, it in self.results["tests"].items():
            wrong += [f"{suite}: {line}" for line in suites.broken(it["runs"])]
        measured = self.results["measured"]
        wrong += measure_questions.broken(measured.get("questions", {}), self.options.simulator)
        wrong += measure_clients.broken(measured.get("clients", {}))
        wrong += measure_in_place.broken(measured.get("in place", {}), self.options.simulator)
        if self.options.strict:
            missed = [it for it in self.results["targets"] if it["verdict"] == "missed"]
            wrong += [f"missed: {it['name']}" for it in missed]
        return wrong


def main() -> int:
    options = arguments()
    run = Run(options)
    print("-- looking at the machine", flush=True)
    try:
        wrong = run.check()
    except RuntimeError as error:
        wrong = [str(error)]
    if wrong:
        shutil.rmtree(run.work)
        found = [f"  found     {it}" for it in wrong]
        print("error: nothing can be measured here", *found, f"  expected  {EXPECTED}", sep="\n", file=sys.stderr)
        return 2
    chosen = [name for name in TESTS if name in options.only]
    with ThreadPoolExecutor(max_workers=1 if options.simulator else len(TESTS)) as side_by_side:
        # Asked for its results, it raises what a stage raises.
        list(side_by_side.map(lambda name: run.stage(name, *TESTS[name], "tests"), chosen))
    for name, told in MEASUREMENTS.items():
        if name in options.only:
            run.stage(name, *told, "measured")
    run.write()
    conclude(run)
    failed = run.failed()
    print(*(f"failed: {it}" for it in failed), sep="\n")
    return 1 if failed else 0


def conclude(run: Run) -> None:
    """The table, and one file of all that was said."""
    out = run.options.out
    text = report.markdown(run.results)
    (out / "results.md").write_text(text)
    print(text)
    print(f"plots: cargo xtask bench --plot {out / 'results.json'} --out {out}, in a checkout")
    with tarfile.open(out / "logs.tar.gz", "w:gz") as logs:
        for file in sorted(run.work.glob("*.txt")):
            logs.add(file, arcname=file.name)
    shutil.rmtree(run.work)


if __name__ == "__main__":
    sys.exit(main())
