"""The library under sanitizers, under real torch in the simulator; docs/reliability-checks.md says what is shown.

Programs of tests/stress and tests/sanitize have to end well, and the defects of defects.toml have to be found: all are in the
one library, and asleep until a process is told which one it has. `cargo xtask test --all --only library` builds it and calls
this.

usage: run.py seed FOLDER                -> the C++ side with the defects in it
       run.py thread|address --flags=FLAGS --library FILE --torch DIR --cuda DIRS --preload LIBS --paths DIRS [--seconds N]
              [--junitxml FILE]
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).parents[2]
HERE = ROOT / "tests/sanitize"
CPP = ROOT / "cxx-bridge/cpp"
OUT = ROOT / "target/sanitize"
FLAGS = "-std=c++20 -O1 -g1 -pthread -rdynamic -Wall -Wextra -Werror".split()
# Seconds after which a run is taken to hang, on a machine where others compute, too.
PATIENCE = 300
# Races are found or not as threads meet: so often a defect may be missed.
TRIES = 20

STRESS = {"bounded", "churn", "soak"}
# Small enough for a few gigabytes with what a sanitizer takes; the threshold is below the large blocks.
SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "32", "BUDDY_BLOCK_COUNT": "2", "BUDDY_THRESHOLD_MB": "1", "PINBUDDY_SIM_DEVICES": "1"}
# Events seem to be outstanding for a while, so that device memory waits for them.
DEVICE = {"PINBUDDY_SIM_DEVICE_MB": "1024", "PINBUDDY_SIM_EVENT_LAG_MS": "2"}
HAZARDS = {"PINBUDDY_SIM_HAZARDS": "1", "PINBUDDY_SIM_EVENT_LAG_MS": "20", "BUDDY_MAX_MB": "2048"}


class Failure(Exception):
    """What was found, and what to do."""


class Sanitizer:
    def __init__(self, name: str, asked: argparse.Namespace):
        self.name, self.asked, self.ran = name, asked, 0
        runtime, options = ALL[name]
        self.suppressions = HERE / f"suppressions/{name}.txt"
        self.unused = {it for it in self.suppressions.read_text().splitlines() if it and not it.startswith("#")}
        found = subprocess.check_output(["g++", f"-print-file-name={runtime}"], text=True).strip()
        if "/" not in found:
            raise Failure(f"there is no {runtime}\n  to do     apt-get install libgcc-$(g++ -dumpversion)-dev, or dnf install libtsan libasan libubsan")
        cudarts = sorted({str(it.parent) for it in (asked.torch.parent / "nvidia").rglob("libcudart.so.*")})
        self.variables = SETTINGS | {
            "LD_PRELOAD": f"{Path(found).resolve()}:{asked.library}:{asked.preload}",
            "LD_LIBRARY_PATH": ":".join([f"{asked.torch}/lib", *cudarts, asked.paths]),
            "UBSAN_OPTIONS": "print_stacktrace=1",
        } | {it: f"{value}:print_suppressions=1:suppressions={self.suppressions}" for it, value in options.items()}

    def program(self, name: str) -> Path:
        """Compiled unless it is of the same inputs."""
        folder = ROOT / ("tests/stress" if name in STRESS else "tests/sanitize")
        torch = self.asked.torch
        headers = [torch / "include", torch / "include/torch/csrc/api/include", *filter(None, self.asked.cuda.split(":"))]
        # What the program defines in place of libc's, libraries are to find, too.
        command = ["g++", *self.asked.flags.split(), *FLAGS, *(f"-isystem{it}" for it in headers), folder / f"{name}.cpp", HERE / "clocklock.cpp"]
        command += [f"-L{torch}/lib", *"-Wl,--no-as-needed -ltorch -ltorch_cuda -ltorch_cpu -lc10 -lc10_cuda -Wl,--allow-shlib-undefined".split()]
        command = [*map(str, command)]
        digest = hashlib.sha256("\n".join([subprocess.getoutput("g++ --version"), *command]).encode())
        for it in sorted([*HERE.glob("*.cpp"), *(ROOT / "tests/stress").iterdir()]):
            digest.update(it.read_bytes())
        file = OUT / f"{name}-{self.name}-{digest.hexdigest()[:16]}"
        if not file.exists():
            for stale in OUT.glob(f"{name}-{self.name}-*"):
                stale.unlink()
            done = subprocess.run([*command, "-o", f"{file}.part"], capture_output=True, text=True)
            if done.returncode:
                raise Failure(f"{name} does not compile with a sanitizer\n  found     {done.stderr.strip()}\n  to do     correct what g++ names, and run it again")
            Path(f"{file}.part").rename(file)
        return file

    def run(self, name: str, arguments: str, variables: dict[str, str], patience: int = PATIENCE) -> tuple[bool, str]:
        """Whether it ended well within `patience` seconds, and what it wrote."""
        env = {it: value for it, value in os.environ.items() if it not in ("LD_PRELOAD", "PINBUDDY_SEEDED")}
        # For the program alone: what is preloaded needs what it brings.
        own = [f"{it}={value}" for it, value in (self.variables | variables).items()]
        command = ["timeout", "--kill-after=5", str(patience), "env", *own, str(self.program(name)), *arguments.split()]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        hangs = f"\nstill running after {patience} s" if done.returncode == 124 else ""
        return done.returncode == 0, done.stdout + hangs

    def run_well(self, name: str, arguments: str, variables: dict[str, str]) -> list[str]:
        start = time.monotonic()
        well, said = self.run(name, arguments, variables)
        print(f"{self.name}: {name} {arguments}: {time.monotonic() - start:.1f} s", flush=True)
        if not well or "the engine is retired" in said:
            raise Failure(f"the {self.name} sanitizer, in {name} {arguments} {variables}\n{said}")
        self.ran += 1
        self.unused = {line for line in self.unused if not any(it.rstrip().endswith(line) for it in said.splitlines())}
        return said.splitlines()

    def programs(self, seed: int, plan: dict[str, str]) -> None:
        # What the guard compares, in Rust, ThreadSanitizer reports word by word, to be suppressed: that takes minutes.
        guarded = [{"BUDDY_GUARD": "1"}] if self.name == "address" else []
        for variables in ({}, *guarded):
            self.run_well("churn", f"8 4 120 {seed}", variables)
            self.run_well("ending", f"6 {1500 + seed * 97 % 400}", variables)
        said = self.run_well("bounded", "4 3000 65536", {})
        if not any(len(it) == 2 and it[0] == it[1] for it in map(str.split, said)):
            raise Failure(f"the threads of bounded pinned beyond what they share: {said}")
        with tempfile.TemporaryDirectory() as folder:
            self.run_well("churn", f"8 2 120 {seed}", two_nodes(Path(folder)))
            # The first run has a plan made, and the second is planned.
            self.run_well("edges", "4 40", plan)
            self.run_well("edges", "1 1", plan)
            variables = DEVICE | {"BUDDY_DEVICE_PLAN": f"{folder}/device.json"}
            self.run_well("device", "", variables)
            said = self.run_well("device", f"6 150 {seed}", variables)
        if not any(it.isdigit() and int(it) > 0 for it in said):
            raise Failure(f"no request was served as planned: {said}")

    def find(self, defect: dict, plan: dict[str, str]) -> None:
        """A list that is corrupt may end a process before a sanitizer sees why: such a run is one that did not find it."""
        name, otherwise, hung = defect.get("program", "churn"), "", 0
        start = time.monotonic()
        variables = {"PINBUDDY_SEEDED": defect["name"]} | {"soak": HAZARDS, "edges": plan}.get(name, {})
        for number in range(1, TRIES + 1):
            arguments = {"churn": f"4 4 200 {number}", "edges": "1 1", "soak": f"1 8 {number}"}[name]
            well, said = self.run(name, arguments, variables, PATIENCE // 5)
            if any(it in said for it in defect["says"].split("|")):
                print(f"{self.name}: found: {defect['name']}: run {number}, {time.monotonic() - start:.1f} s", flush=True)
                self.ran += 1
                return
            otherwise = otherwise if well else f"\nand a run without it ended so:\n{said}"
            hung += "still running after" in said
            if hung == 3:
                break
        raise Failure(
            f"the {self.name} sanitizer missed a defect: {defect['name']}\n"
            f"  expected  one of {TRIES} runs with {defect['says']}\n"
            f"  to do     have {name}.cpp reach {defect['file']}, or mend tests/sanitize/defects.toml{otherwise}"
        )

    def look(self) -> int:
        with tempfile.TemporaryDirectory() as folder:
            plan = {"BUDDY_PLAN": f"{folder}/host.plan"}
            for seed in range(1, 1_000_000):
                self.programs(seed, plan)
                if time.monotonic() - START >= self.asked.seconds:
                    break
            if self.unused:
                raise Failure(f"stale suppressions: delete them from {self.suppressions}\n" + "\n".join(self.unused))
            for defect in read_defects()["defect"]:
                if defect["finds"] == self.name:
                    self.find(defect, plan)
        return self.ran


def two_nodes(machine: Path) -> dict[str, str]:
    """Settings for a machine that is made up: a device on each node."""
    for device in (0, 1):
        folder = machine / f"sys/bus/pci/devices/0000:{0x10 + device:02x}:00.0"
        folder.mkdir(parents=True)
        (folder / "numa_node").write_text(f"{device}\n")
    (machine / "sys/devices/system/node").mkdir(parents=True)
    (machine / "sys/devices/system/node/has_memory").write_text("0-1\n")
    return {"BUDDY_NUMA": "auto", "PINBUDDY_SIM_MACHINE": str(machine), "PINBUDDY_SIM_DEVICES": "2"}


def read_defects() -> dict:
    return tomllib.loads((HERE / "defects.toml").read_text())


def seed(copy: Path) -> None:
    """Copies the sources, with all defects in them. Unchanged files keep their time, and files that are gone go."""
    sources = {it.relative_to(CPP): it.read_text() for it in CPP.rglob("*") if it.suffix in (".h", ".cpp")}
    every = read_defects()
    every = every["defect"] + every["told"]
    for it in every:
        file, name = Path(it["file"]), it.get("name", "")
        count = sources[file].count(it["text"])
        if count != 1 or name not in it["seeded"] or (name and it["finds"] not in ALL):
            raise Failure(f"{name or it['text']!r} has {count} places in cxx-bridge/cpp/{file}; expected one that names it, and who finds it")
        sources[file] = sources[file].replace(it["text"], it["seeded"])
    for file in {it["file"] for it in every}:
        sources[Path(file)] = f'#include "seeded.h"\n#line 1\n{sources[Path(file)]}'
    sources[Path("seeded.h")] = (HERE / "seeded.h").read_text()
    for stale in copy.rglob("*.*"):
        if stale.relative_to(copy) not in sources:
            stale.unlink()
    for file, text in sources.items():
        to = copy / file
        if not to.exists() or to.read_text() != text:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(text)


START = time.monotonic()
# For each the library that comes first, and options.
ALL = {
    # A child has its parent's threads in its books, and cannot join them.
    "thread": ("libtsan.so", {"TSAN_OPTIONS": "halt_on_error=1:exitcode=66:second_deadlock_stack=1:report_thread_leaks=0"}),
    "address": ("libasan.so", {"ASAN_OPTIONS": "detect_stack_use_after_return=1"}),
}


def main() -> int:
    if sys.argv[1:2] == ["seed"]:
        seed(Path(sys.argv[2]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sanitizer", choices=ALL)
    parser.add_argument("--seconds", type=int, default=0)
    for name in ("--flags", "--library", "--cuda", "--preload", "--paths"):
        parser.add_argument(name, default="")
    parser.add_argument("--torch", type=Path)
    parser.add_argument("--junitxml", type=Path, help="a report for those who count")
    asked = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        ran = Sanitizer(asked.sanitizer, asked).look()
    except Failure as failure:
        print(failure, file=sys.stderr)
        report(asked, 1, str(failure))
        return 1
    print(f"sanitizers: {ran} runs and defects, as expected")
    report(asked, ran)
    return 0


def report(asked: argparse.Namespace, ran: int, failure: str = "") -> None:
    """The failure's first line is its name; what a sanitizer said is its text."""
    name, case = quoteattr(failure.partition("\n")[0]), ""
    if failure:
        case = f'<testcase classname="sanitize" name={name}><failure message={name}>{escape(failure)}</failure></testcase>'
    if asked.junitxml:
        text = f'<testsuite name="sanitize" tests="{ran}" failures="{int(bool(failure))}">{case}</testsuite>'
        asked.junitxml.write_text(f"<testsuites>{text}</testsuites>\n")


if __name__ == "__main__":
    sys.exit(main())
