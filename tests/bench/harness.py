"""Processes of the harness (harness.cpp), each with one allocator, and the measuring loop: rounds of turns.

Invariant: what is compared runs in the same round, in turns, on the same requests.
"""

import contextlib
import json
import mmap
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Callable

from results import Failed, ratio_of_turns

# The allocators and their settings. docs/bench.md explains them.
SUBJECTS = {
    "stock": {},
    # All settings against rounding, slow pins and slow events.
    "stock-tuned": {"PYTORCH_ALLOC_CONF": "pinned_max_round_threshold_mb:1,pinned_use_background_threads:True"},
    # As much as #181094 proposes to pin ahead.
    "reserve": {"PYTORCH_ALLOC_CONF": "pinned_reserve_segment_size_mb:8192"},
    "pinbuddy": {},
    "pinbuddy-exact": {"BUDDY_WARMUP": "off", "BUDDY_GROWTH": "exact"},
    "pinbuddy-plan": {},
}
# Exact growth pins less, but is as fast; plans have a part of their own. Stock comes first.
TIMED = ["stock", "stock-tuned", "reserve", "pinbuddy"]
SYNC = {"BUDDY_WARMUP": "sync"}


def is_fork(subject: str) -> bool:
    return subject.startswith("pinbuddy")


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def settings(subject: str, counted: bool) -> dict:
    """Pins are made, or only counted by the simulator, so that any size fits any machine."""
    own = dict(SUBJECTS[subject])
    if counted:
        own["PINBUDDY_SIM_LOCK"] = "0"
        if is_fork(subject):
            # Mapped memory would be touched, and the budget would be the machine's.
            own |= {"BUDDY_BACKING": "cuda", "BUDDY_MAX_MB": "1000000"}
    elif subject == "stock-tuned":
        # Registering touches memory.
        threads = 1 << (min(len(cores()), 8) - 1).bit_length()
        own["PYTORCH_ALLOC_CONF"] += f",pinned_use_cuda_host_register:True,pinned_num_register_threads:{threads}"
    return own


def use_memory(size: int, flags: int = 0) -> None:
    """Uses so much and gives it back to the kernel: a virtual machine has to ask its host for memory that was not in use lately, which
    takes longer than all that is measured. In huge pages of the pool with its flag, else in transparent ones."""
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flags) as memory:
        if not flags:
            memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, size, 4096):
            memory[at] = 1


def output(command: list, **more) -> str:
    """What a command prints. What it complains of goes to the terminal, or into the failure if it is captured."""
    command = [str(it) for it in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **more)
    if done.returncode:
        raise Failed(f"{' '.join(command)} failed" + (f":\n{done.stderr.strip()}" if done.stderr is not None else ""))
    return done.stdout.strip()


def printed(command: list, environ: dict, cwd: Path | None = None):
    """The figures that a command prints as JSON: its last line; of `--json`, all of it."""
    said = output(command, env={**environ, "PYTHONDONTWRITEBYTECODE": "1"}, cwd=cwd, stderr=subprocess.PIPE)
    for text in (said, *said.splitlines()[-1:]):
        with contextlib.suppress(ValueError):
            return json.loads(text)
    raise Failed(f"{' '.join(map(str, command))} printed no figures as a line of JSON:\n{said}")


def of_system(file: str, name: str) -> str:
    """A value in /proc/cpuinfo, or in a file like it."""
    lines = (line.partition(":") for line in Path(file).read_text().splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "")


class Process:
    """A process of the harness, which answers each line with a line of `name=value[,value...]`."""

    def __init__(self, name: str, command: list, environ: dict):
        self.name = name
        self.complaints = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints, text=True)

    def ask(self, line: str) -> dict[str, list[float]]:
        answer = ""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        if not answer:
            status = self.process.wait()
            self.complaints.seek(0)
            raise Failed(
                f"the harness with {self.name} ended with status {status} when told: {line}\n{self.complaints.read().strip()}\n"
                "  to do     pinbuddy doctor says what this machine has; --only runs the other parts")
        if answer.startswith("error "):
            raise Failed(f"{self.name} was told {line!r} and said: {answer[6:].strip()}")
        fields = (it.partition("=") for it in answer.split())
        return {name: [float(it) for it in values.split(",") if it] for name, _, values in fields}

    def number(self, line: str, name: str = "ns") -> float:
        values = self.ask(line).get(name, [])
        if len(values) != 1:
            raise Failed(f"{self.name} was told {line!r} and said {len(values)} numbers called {name}, not one")
        return values[0]

    def pin_to_one_core(self) -> "Process":
        os.sched_setaffinity(self.process.pid, {cores()[-1]})
        return self

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_) -> None:
        """It ends when its input does, and may write a plan or a trace then."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.complaints.close()


@dataclass
class Machine:
    """Where processes run: both environments, the harness, the environment variables, and how much is measured."""

    fork: Path
    stock: Path
    program: Path
    environ: dict
    simulated: bool
    work: Path
    effort: str = "full"
    rounds: int = 7  # each with its own processes, since memory layout differs by process
    turns: int = 50  # of a millisecond or so
    say: Callable[[str], None] = field(default=lambda text: None)

    def python(self, fork: bool) -> str:
        return str((self.fork if fork else self.stock) / "bin/python")

    def start(self, subject: str, more: dict = {}, *, counted: bool = True) -> Process:
        """A process with one allocator. Pages are locked on real CUDA, and where that is asked for."""
        which = self.fork if is_fork(subject) else self.stock
        libraries = [next(which.glob("lib/python*/site-packages/torch/lib")), self.environ.get("LD_LIBRARY_PATH")]
        environ = {
            **self.environ,
            "LD_LIBRARY_PATH": ":".join(str(it) for it in libraries if it),
            **settings(subject, counted and self.simulated),
            **more,
        }
        return Process(subject, [str(self.program)], environ)

    def start_all(self, subjects: list, more: dict = {}) -> list[Process]:
        return [self.start(it, more) for it in subjects]

    @contextlib.contextmanager
    def folder(self):
        """A folder for a while."""
        self.work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            yield Path(folder)


@contextlib.contextmanager
def planned(machine: Machine, program: Callable[[Process], object], variable: str = "BUDDY_PLAN"):
    """What starts processes with the plan of a first run of the program, which is not measured: it was recorded and planned."""
    with machine.folder() as folder:
        file = folder / "run.plan"

        def start(more: dict = {}) -> Process:
            return machine.start("pinbuddy-plan", {variable: str(file), **more})

        with start() as process:
            program(process)
        if not file.is_file() or "pinbuddy-no-plan" in file.read_text():
            raise Failed("the first run made no plan")
        yield start


@dataclass
class Case:
    """What processes do in turns: lines to prepare, and the measured line with the field of its answer."""

    name: str
    measured: str
    prepare: Callable[[Process], bool | None] = lambda process: None  # False: this process does not take part any more
    field: str = "ns"


def in_turns(processes: list, turns: int, ask: Callable[[Process], float]) -> list[list[float]]:
    """Asks each process once a turn, and rotates who goes first. The answers by process, in the order of turns."""
    seen = [[] for _ in processes]
    for turn in range(turns):
        for position in range(len(processes)):
            which = (turn + position) % len(processes)
            seen[which].append(ask(processes[which]))
    return seen


def measure(machine: Machine, start: Callable[[], list], cases: list, rounds: int = 0, turns: int = 0, pinned=True) -> dict:
    """By case and process: for each round the list of its turns. Each round has processes of its own."""
    seen: dict = {case.name: {} for case in cases}
    for number in range(1, (rounds or machine.rounds) + 1):
        with contextlib.ExitStack() as stack:
            processes = [stack.enter_context(it) for it in start()]
            if pinned:
                for it in processes:
                    it.pin_to_one_core()
            for case in cases:
                machine.say(f"round {number}, {case.name}")
                processes = [it for it in processes if case.prepare(it) is not False]
                asked = in_turns(processes, turns or machine.turns, lambda it: it.number(case.measured, case.field))
                for it, own in zip(processes, asked):
                    seen[case.name].setdefault(it.name, []).append(own)
    return seen


def requests(pattern: str, pairs: int = 0, word: str = "requests") -> Callable[[Process], None]:
    """Prepares a pattern of requests, of pinned memory or, with `device`, of the device's, and does some pairs of it."""

    def prepare(process: Process) -> None:
        process.ask(f"{word} {pattern}")
        if pairs:
            process.ask(f"pairs {pairs}")

    return prepare


def crowd(name: str, count: int, patience: int) -> Case:
    """Requests of many sizes among so many live blocks and as many holes, if the allocator makes these in so many seconds."""

    def prepare(process: Process) -> bool:
        process.ask("requests small-miss")
        able = process.number(f"crowd {count} {patience}", "done") == 1
        if able:
            process.ask("pairs 1000")
        return able

    return Case(name, "pairs 1000", prepare)


def ratios(seen: dict, of: str, over: str = "stock") -> list[float]:
    """A round's median of its turns' ratios, for each round."""
    return [ratio_of_turns(a, b) for a, b in zip(seen[of], seen[over])]


def medians(seen: dict, of: str) -> list[float]:
    return [median(turns) for turns in seen[of]]
