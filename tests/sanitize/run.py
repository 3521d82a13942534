"""The C++ side of the bridge under sanitizers; docs/reliability-checks.md says what is shown.

By itself, with stand-ins for torch, CUDA and Rust: programs of tests/stress and tests/sanitize have to end well, and the
defects of defects.toml have to be found. With --library, as the library that people get, under real torch in the simulator:
`cargo xtask test --all --only library` builds it and calls this.

usage: run.py thread|address... [--seconds N] [--library FILE --torch DIR --cuda DIRS --preload LIBS --paths DIRS]
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
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
STAND_INS = [HERE / "stand-in", OUT / "stand-in"]
FLAGS = "-std=c++20 -O1 -g1 -pthread -Wall -Wextra -Werror".split()
# Seconds after which a run is taken to hang, on a machine where others compute, too.
PATIENCE = 300
# Races are found or not as threads meet: so often a defect may be missed.
TRIES = 20

# Each program: where it is; threads and other arguments of a run of seconds, and of a longer one with a seed; whether it runs
# once more with BUDDY_GUARD=1.
PROGRAMS = {
    "bounded": ("tests/stress", "4 3000 65536", lambda seed: f"8 20000 {65536 << seed % 2 * 4}", False),
    "churn": ("tests/stress", "4 4 150 1", lambda seed: f"16 8 150 {seed * 1000}", True),
    "edges": ("tests/sanitize", "4 40", lambda seed: "6 400", True),
    "events": ("tests/sanitize", "4 40", lambda seed: "7 400", False),
    "ending": ("tests/sanitize", "4 300", lambda seed: f"12 {seed * 97 % 400}", True),
}
# Headers of torch and CUDA that the C++ side includes: what stands in for them is in one file.
HEADERS = """ATen/core/CachingHostAllocator.h c10/core/Device.h c10/core/impl/VirtualGuardImpl.h c10/cuda/CUDAAllocatorConfig.h
c10/cuda/CUDAException.h c10/cuda/CUDAFunctions.h c10/cuda/CUDAGraphsC10Utils.h c10/cuda/CUDAGuard.h c10/cuda/CUDAStream.h
c10/util/Exception.h c10/util/flat_hash_map.h c10/util/llvmMathExtras.h c10/util/ScopeExit.h cuda_runtime_api.h""".split()
# Under torch. Small enough for a few gigabytes with what a sanitizer takes; the threshold is below the large blocks.
WITH_TORCH = [("churn", "8 4 120", {}), ("churn", "6 2 100", {"BUDDY_GUARD": "1"})]
SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "32", "BUDDY_BLOCK_COUNT": "2", "BUDDY_THRESHOLD_MB": "1"}
# Events seem to be outstanding for a while, so that device memory waits for them.
DEVICE_SETTINGS = {"PINBUDDY_SIM_DEVICE_MB": "1024", "PINBUDDY_SIM_EVENT_LAG_MS": "2"}


class Failure(Exception):
    """What was found, and what to do."""


def call(command: list, what: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        packages = "apt-get install libgcc-$(g++ -dumpversion)-dev, or dnf install libtsan libasan libubsan"
        # The linker's word for a library.
        remedy = packages if "cannot find" in done.stderr else "correct what g++ names, and run it again"
        raise Failure(f"{what} does not compile with a sanitizer\n  found     {done.stderr.strip()}\n  to do     {remedy}")
    return done.stdout


@dataclass
class Sanitizer:
    name: str
    flags: list[str]
    options: dict[str, str]
    runtime: str
    ran: int = 0
    unused: set[str] = field(default_factory=set)

    def __post_init__(self):
        self.suppressions = HERE / f"suppressions/{self.name}.txt"
        self.unused = {it for it in self.suppressions.read_text().splitlines() if it and not it.startswith("#")}

    def make(self, output: str, command: list, inputs: list[Path], text: str = "") -> Path:
        """Runs g++ unless its output is of the same inputs."""
        file = OUT / f"{output}-{self.name}"
        command = ["g++", *self.flags, *map(str, command)]
        digest = hashlib.sha256("\n".join([text, subprocess.getoutput("g++ --version"), *command]).encode())
        for it in inputs:
            digest.update(it.read_bytes())
        stamp = Path(f"{file}.sha256")
        if not file.exists() or not stamp.exists() or stamp.read_text() != digest.hexdigest():
            call([*command, "-o", file], output)
            stamp.write_text(digest.hexdigest())
        return file

    def compile(self, output: str, sources: list[Path], include: list[Path], *flags: str) -> Path:
        """All sources as one, since each by itself would read the same headers again."""
        whole = OUT / f"{output}-{self.name}.cpp"
        text = "".join(f'#include "{it}"\n' for it in sources)
        whole.write_text(text)
        folders = {*include, *(it.parent for it in sources)}
        headers = sorted(header for folder in folders for header in folder.rglob("*.h"))
        command = [*FLAGS, *flags, *(f"-I{it}" for it in include), "-c", whole]
        return self.make(f"{output}.o", command, [*sources, *headers], text)

    def library(self, output: str, first: list[Path], sources: Path) -> Path:
        """The C++ side of a folder, with what stands in for all around it."""
        # Storages are PyTorch's: nothing stands in for them.
        ours = sorted({*sources.rglob("*.cpp")} - {sources / "in_place.cpp"})
        own = [*first, HERE / "clocklock.cpp", *ours]
        return self.compile(output, own, [*STAND_INS, sources], "-DUSE_CUDA", "-DPINBUDDY_DEBUG")

    def link(self, output: str, objects: list[Path], *more: str) -> Path:
        # What the program defines in place of libc's, libraries are to find, too.
        return self.make(output, ["-pthread", "-rdynamic", *objects, *more], objects)

    def program(self, name: str, prefix: str, library: Path) -> Path:
        main = self.compile(f"{name}-main", [ROOT / PROGRAMS[name][0] / f"{name}.cpp"], STAND_INS)
        return self.link(f"{prefix}{name}", [library, main])

    def run(self, program: Path, arguments: str, variables: dict[str, str], patience: int = PATIENCE) -> tuple[bool, str]:
        """Whether it ended well within `patience` seconds, and what it wrote."""
        env = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PINBUDDY_SEEDED")}
        env |= {"UBSAN_OPTIONS": "print_stacktrace=1"}
        more = f":print_suppressions=1:suppressions={self.suppressions}"
        env |= {name: value + more for name, value in self.options.items()}
        # For the program alone: what is preloaded needs what it brings.
        own = [f"{name}={value}" for name, value in variables.items()]
        command = ["timeout", "--kill-after=5", str(patience), "env", *own, str(program), *arguments.split()]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        hangs = f"\nstill running after {patience} s" if done.returncode == 124 else ""
        return done.returncode == 0, done.stdout + hangs

    def run_well(self, program: Path, arguments: str, variables: dict[str, str]) -> str:
        well, said = self.run(program, arguments, variables)
        if not well:
            raise Failure(f"the {self.name} sanitizer, in {program.name} {arguments} {variables}\n{said}")
        self.ran += 1
        self.unused = {line for line in self.unused if not any(it.rstrip().endswith(line) for it in said.splitlines())}
        return said

    def programs(self, seed: int | None = None) -> None:
        library = self.library("units", [], CPP)
        for name, (_, short, long, guarded) in PROGRAMS.items():
            program = self.program(name, "", library)
            said = self.run_well(program, long(seed) if seed else short, {}).split()
            if not said or name == "bounded" and (len(said) != 2 or said[0] != said[1]):
                raise Failure(f"{name} did nothing, or its threads pinned beyond what they share: {said}")
            # Half of the threads are on a device of another node.
            self.run_well(program, short, {"BUDDY_NUMA": "auto"})
            if guarded:
                # It fills and compares whole blocks, so a long run would take hours.
                self.run_well(program, short, {"BUDDY_GUARD": "1"})

    def defects(self) -> None:
        """All are in one copy of the sources, and asleep until a process is told which one it has."""
        sources = OUT / f"seeded-{self.name}-sources"
        every = tomllib.loads((HERE / "defects.toml").read_text())["defect"]
        seed(every, sources)
        library = self.library("seeded", [HERE / "seeded.h"], sources)
        mine = [it for it in every if it["finds"] == self.name]
        if not mine or any(it["finds"] not in ALL for it in every):
            raise Failure(f"defects.toml: expected defects for each of {', '.join(ALL)}, and for nobody else")
        for name in {it.get("program", "churn") for it in mine}:
            # With none of them awake it ends well.
            self.run_well(self.program(name, "seeded-", library), PROGRAMS[name][1], {})
        for defect in mine:
            self.find(defect)

    def find(self, defect: dict) -> None:
        """A list that is corrupt may end a process before a sanitizer sees why: such a run is one that did not find it."""
        name, otherwise, hung = defect.get("program", "churn"), "", 0
        for number in range(1, TRIES + 1):
            arguments = f"4 4 200 {number}" if name == "churn" else PROGRAMS[name][1]
            well, said = self.run(OUT / f"seeded-{name}-{self.name}", arguments, {"PINBUDDY_SEEDED": defect["name"]}, PATIENCE // 10)
            if not well and any(it in said for it in defect["says"].split("|")):
                print(f"{self.name}: found: {defect['name']}", flush=True)
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

    def under_torch(self, asked: argparse.Namespace, number: int) -> None:
        runtime = Path(call(["g++", f"-print-file-name={self.runtime}"], self.runtime).strip()).resolve()
        cudarts = sorted({str(it.parent) for it in (asked.torch.parent / "nvidia").rglob("libcudart.so.*")})
        variables = SETTINGS | {
            "LD_PRELOAD": f"{runtime}:{asked.library}:{asked.preload}",
            "LD_LIBRARY_PATH": ":".join([f"{asked.torch}/lib", *cudarts, asked.paths]),
            "PINBUDDY_SIM_DEVICES": "1",
            # PyTorch's own start leaks, and what Rust keeps is out of sight.
            "LSAN_OPTIONS": "detect_leaks=0",
        }
        for name, arguments, own in WITH_TORCH:
            program = self.with_torch(name, PROGRAMS[name][0], asked.torch, "")
            self.run_well(program, f"{arguments} {number}", variables | own)
        program = self.with_torch("device", "tests/sanitize", asked.torch, asked.cuda)
        with tempfile.TemporaryDirectory() as folder:
            # The first run has a plan made, and the second is planned.
            variables |= DEVICE_SETTINGS | {"BUDDY_DEVICE_PLAN": f"{folder}/device.json"}
            self.run_well(program, "", variables)
            said = self.run_well(program, f"6 150 {number}", variables)
        if not any(it.isdigit() and int(it) > 0 for it in said.splitlines()):
            raise Failure(f"no request was served as planned: {said}")
        if self.unused:
            raise Failure(f"stale suppressions: delete them from {self.suppressions}\n" + "\n".join(self.unused))

    def with_torch(self, name: str, folder: str, torch: Path, cuda: str) -> Path:
        headers = [torch / "include", torch / "include/torch/csrc/api/include", *filter(None, cuda.split(":"))]
        sources = [ROOT / folder / f"{name}.cpp", HERE / "clocklock.cpp"]
        main = self.compile(f"{name}-torch-main", sources, [], *(f"-isystem{it}" for it in headers))
        libraries = "-Wl,--no-as-needed -ltorch -ltorch_cuda -ltorch_cpu -lc10 -lc10_cuda -Wl,--allow-shlib-undefined"
        return self.link(f"{name}-torch", [main], f"-L{torch}/lib", *libraries.split())


def seed(defects: list[dict], copy: Path) -> None:
    """Copies the sources, with all defects in them. Unchanged files keep their place, and files that are gone go."""
    sources = [it for it in CPP.rglob("*") if it.suffix in (".h", ".cpp")]
    for stale in copy.rglob("*.*"):
        stale.unlink()
    for file in sources:
        name = str(file.relative_to(CPP))
        text = file.read_text()
        for defect in defects:
            if defect["file"] != name:
                continue
            count = text.count(defect["text"])
            if count != 1 or defect["name"] not in defect["seeded"]:
                raise Failure(f"the defect {defect['name']!r} has {count} places in cxx-bridge/cpp/{name}; expected one that names it")
            text = text.replace(defect["text"], defect["seeded"])
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(text)


ALL = {
    # A child has its parent's threads in its books, and cannot join them.
    "thread": lambda: Sanitizer("thread", ["-fsanitize=thread"], {"TSAN_OPTIONS": "halt_on_error=1:exitcode=66:second_deadlock_stack=1:report_thread_leaks=0"}, "libtsan.so"),
    # What is never destroyed, by design, is reached from statics: that is no leak.
    "address": lambda: Sanitizer("address", ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], {"ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1"}, "libasan.so"),
}


def look(name: str, asked: argparse.Namespace) -> int:
    sanitizer, number = ALL[name](), 1
    if not asked.library:
        sanitizer.programs()
        sanitizer.defects()
    # Of these alone are there to be so many seconds.
    start = time.monotonic()
    while asked.library or time.monotonic() - start < asked.seconds:
        if asked.library:
            sanitizer.under_torch(asked, number)
        else:
            sanitizer.programs(number + 1)
        number += 1
        if time.monotonic() - start >= asked.seconds:
            break
    return sanitizer.ran


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sanitizers", nargs="+", choices=ALL)
    parser.add_argument("--seconds", type=int, default=0)
    for name in ("--library", "--cuda", "--preload", "--paths"):
        parser.add_argument(name, default="")
    parser.add_argument("--torch", type=Path)
    parser.add_argument("--junitxml", type=Path, help="a report for those who count")
    asked = parser.parse_args()
    for name in HEADERS:
        header = STAND_INS[1] / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text('#pragma once\n#include "upstream_lists.h"\n')
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(look, name, asked) for name in asked.sanitizers]
    try:
        ran = sum(it.result() for it in both)
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
