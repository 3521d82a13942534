"""Runs a program with each of its calls failing in turn, with pinbuddy and with stock, and finds what differs.

A program is run once to count its calls. Then each call that was counted fails, one run each: once, from then on, and
with an error that stays. Whatever stock does in the same place is no difference: a step that fails with the same
exception while the same call fails, or the one that stock has in its place. What is: another end of the process, a
step that fails with pinbuddy alone, an error that does not name the cause, memory that is lost, a hazard, what the
engine's audit finds.
"""

import itertools
import json
import subprocess
import tempfile
from fnmatch import fnmatchcase
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import plans
from faults.programs import HEAD, PROGRAMS, SLOTS
from measure import environment
from start import start

OUT_OF_MEMORY, UNKNOWN, ILLEGAL_ADDRESS = 2, 999, 700
TEXTS = {
    OUT_OF_MEMORY: "out of memory",
    UNKNOWN: "unknown error",
    ILLEGAL_ADDRESS: "an illegal memory access was encountered",
}
PINS = {"cudaHostAlloc", "cudaHostRegister", "cudaMalloc"}
# What pinbuddy calls, and what stock does instead.
INSTEAD = {
    "cudaHostRegister": ("cudaHostAlloc",),
    "cudaHostGetDevicePointer": ("cudaHostAlloc",),
    "cudaHostUnregister": ("cudaFreeHost",),
    # Asks for a context.
    "cudaFree": ("cudaHostAlloc",),
    # Stands around a pin, and around an unpin.
    "cudaThreadExchangeStreamCaptureMode": ("cudaHostAlloc", "cudaFreeHost"),
}
# Without end, or none of the allocator's: the first ones speak for all.
PLENTY = {"cudaGetDevice", "cudaSetDevice", "cudaLaunchKernel", "cudaDeviceGetAttribute", "cudaStreamCreateWithPriority"}
# What the quick part has fail: pins, unpins, events, copies, and memory of our own.
COMMONEST = {
    "cudaHostAlloc", "cudaHostRegister", "cudaHostGetDevicePointer", "cudaHostUnregister", "cudaFreeHost",
    "cudaEventCreateWithFlags", "cudaEventRecord", "cudaEventQuery", "cudaMemcpyAsync", "mmap", "madvise", "open", "read",
}
# Has the simulator count system calls, too: this one is never made.
COUNT_ALL = "read:1000000=5"
KINDS = ("once", "for good", "stays")
# System calls whose failures are not of memory and permission.
WAYS = {"read": ("short", "errno 5"), "write": ("short", "errno 28")}
DIFFERENCES = Path(__file__).with_name("differences.txt")


@dataclass(frozen=True)
class Case:
    """A call that fails: which, which one of them, and how."""

    program: str
    entry: str
    call: int
    kind: str

    @property
    def error(self) -> int:
        if self.kind == "stays":
            return ILLEGAL_ADDRESS
        return OUT_OF_MEMORY if self.entry in PINS else UNKNOWN

    @property
    def text(self) -> str:
        """The cause, as CUDA words it."""
        return TEXTS[self.error]

    @property
    def plan(self) -> str:
        if self.kind.startswith("errno"):
            return f"{self.entry}:{self.call}+={self.kind.split()[1]}"
        if self.kind == "short":
            return f"{self.entry}:{self.call}+=short"
        plus = "+" if self.kind == "for good" else ""
        return f"{self.entry}:{self.call}{plus}={self.error}"


@dataclass
class Outcome:
    """What became of a run."""

    status: int | str
    stderr: str = ""
    steps: dict[str, str] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    injected: int = 0
    audit: str = ""
    hazards: int = 0
    # Pinned, and known to nobody.
    lost: int = 0

    def findings(self) -> dict[str, str]:
        """What is not as it is without faults."""
        found = {name: it for name, it in self.steps.items() if it != "ok"}
        if self.status != 0:
            found["the end"] = f"status {self.status}"
        if self.audit:
            found["the audit"] = self.audit
        if self.hazards:
            found["hazards"] = f"hazards: {self.hazards}"
        if self.lost:
            found["lost"] = f"bytes: {self.lost}"
        return found


@cache
def folder() -> tempfile.TemporaryDirectory:
    """For the programs' files; gone when this process ends."""
    return tempfile.TemporaryDirectory(prefix="pinbuddy-faults-")


@cache
def plan_file() -> Path:
    offsets = [0, *itertools.accumulate(SLOTS)]
    slots = [[size * plans.MIB, 0, offset * plans.MIB] for size, offset in zip(SLOTS, offsets)]
    file = Path(folder().name, "plan.json")
    plans.write(file, [offsets[-1] * plans.MIB], slots, [[*range(len(SLOTS))]], threshold=plans.MIB)
    return file


def run(python: str, program: str, plan: str = "") -> Outcome:
    text, settings, _ = PROGRAMS[program]
    files = {"plan": plan_file(), "trace": Path(folder().name, "trace")}
    settings = {name: value.format_map(files) for name, value in settings.items()}
    variables = environment(**settings, PINBUDDY_SIM_FAULT_PLAN=plan)
    try:
        done = start(python, HEAD + text, variables, timeout=60, forked=True)
    except subprocess.TimeoutExpired:
        return Outcome("hangs")
    lines = done.stdout.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        return Outcome(done.returncode or "nothing said", done.stderr)
    told = json.loads(lines[-1])
    return Outcome(
        done.returncode, done.stderr, told["steps"], told["calls"], told["injected"], told["audit"],
        told["hazards"], told["pinned"] - told["known"],
    )


def cases(program: str, calls: dict[str, int], most: int, kinds=KINDS) -> Iterator[Case]:
    """Each of the first ``most`` calls of each name, failing in each way; system calls in fewer."""
    for entry, count in sorted(calls.items()):
        is_cuda = entry.startswith(("cuda", "cublas"))
        if is_cuda:
            ways = kinds
        else:
            ways = WAYS.get(entry, ("errno 12", "errno 1"))
            ways = ways[: len(kinds) - 1]
        some = min(most, 2) if entry in PLENTY or "(" in entry else most
        for call in range(1, min(count, some) + 1):
            for kind in ways:
                yield Case(program, entry, call, kind)


def kind_of(said: str) -> str:
    """An exception's type, of what a step said."""
    return said.split(":")[0]


class Stock:
    """What stock does where a call fails: which step says what, whichever call of that name it is. Asked only where
    pinbuddy does not go on as without the fault, and no further than to the first call where stock does the same."""

    def __init__(self, python: str, program: str, most: int):
        self.python, self.program, self.most = python, program, most
        self.counted = run(python, program)
        self.asked: dict[tuple[str, str], tuple[Iterator[Case], set[tuple[str, str, bool]]]] = {}

    def findings(self, entry: str, kind: str) -> Iterator[tuple[str, str, bool]]:
        """Step, exception, and whether that names the cause."""
        if (entry, kind) not in self.asked:
            calls = {entry: self.counted.calls.get(entry, 0)}
            self.asked[entry, kind] = cases(self.program, calls, self.most, (kind,)), set()
        left, known = self.asked[entry, kind]
        yield from sorted(known)
        for case in left:
            found = run(self.python, self.program, case.plan).findings()
            new = {(name, kind_of(said), case.text in said) for name, said in found.items()} - known
            known |= new
            yield from sorted(new)

    def does(self, case: Case, name: str, said: str) -> bool:
        """Whether stock says the same there, and names the cause no better."""
        named = case.text in said
        for entry in (case.entry, *INSTEAD.get(case.entry, ())):
            if not entry.startswith("cuda"):
                continue
            for where, kind, names_it in self.findings(entry, case.kind):
                if (where, kind) == (name, kind_of(said)) and (named or not names_it):
                    return True
        return False


@dataclass
class Difference:
    """What pinbuddy does and stock does not."""

    case: Case
    name: str
    said: str

    def __str__(self) -> str:
        case = self.case
        return f"{case.program}; {case.entry}:{case.call}; {case.kind}; {self.name}; {self.said}"


def compare(case: Case, outcome: Outcome, stock: Stock) -> Iterator[Difference]:
    for name, said in outcome.findings().items():
        if not stock.does(case, name, said):
            yield Difference(case, name, said)
    if outcome.status == 0 and outcome.injected == 0:
        yield Difference(case, "the fault", "it was never met")


def sweep(
    fork: str, stock: str, program: str, most: int, kinds=KINDS, only: set[str] | None = None, part=(0, 1)
) -> tuple[list[Difference], set[Case]]:
    """All differences, and the cases that were tried: of all calls, or of these only. ``part``: of every so many names the
    one with this number, so that several processes can share a program.

    Some calls depend on threads, or on what the machine has free: one that is not made again is not tried."""
    counted = run(fork, program, COUNT_ALL)
    # Stock may make the call in question later than pinbuddy.
    known = Stock(stock, program, 2 * most + 8)
    for which, it in (("pinbuddy", counted), ("stock", known.counted)):
        if it.findings():
            raise AssertionError(f"{program} with {which} and no fault: {it.findings()}\n{it.stderr}")
    found: list[Difference] = []
    tried: set[Case] = set()
    number, parts = part
    names = sorted(counted.calls)[number::parts]
    calls = {name: counted.calls[name] for name in names if only is None or name in only}
    for case in cases(program, calls, most, kinds):
        outcome = run(fork, program, case.plan)
        if outcome.status == 0 and outcome.calls.get(case.entry, 0) < case.call:
            continue
        tried.add(case)
        found.extend(compare(case, outcome, known))
    return found, tried


@dataclass(frozen=True)
class Listed:
    """A line of `differences.txt`: ``PROGRAM; CALL:FIRST; KIND; STEP; EXCEPTION = REASON``.

    FIRST is the first call of that name that shows it, or ``*`` where threads decide that. PROGRAM may be a pattern:
    then each program that it matches has to show it.
    """

    program: str
    entry: str
    call: str
    kind: str
    name: str
    said: str

    def speaks_of(self, difference: Difference) -> bool:
        case = difference.case
        return (
            fnmatchcase(case.program, self.program)
            and (self.entry, self.kind) == (case.entry, case.kind)
            and (self.name, self.said) == (difference.name, kind_of(difference.said))
            and (self.call == "*" or case.call >= int(self.call))
        )

    def is_stale(self, found: list[Difference], tried: set[Case]) -> bool:
        if self.call == "*":
            return False
        def shows(case: Case) -> bool:
            return any(it.case == case and self.speaks_of(it) for it in found)

        first = (self.entry, int(self.call), self.kind)
        alike = [it for it in tried if fnmatchcase(it.program, self.program) and first == (it.entry, it.call, it.kind)]
        return not all(map(shows, alike))


def against_the_list(found: list[Difference], tried: set[Case]) -> tuple[list[Difference], list[str]]:
    """The differences that no line of the list speaks of, and the lines of it that are not true."""
    listed = {}
    for line in DIFFERENCES.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        difference, _, reason = line.partition(" =")
        if not reason.strip():
            raise ValueError(f"{DIFFERENCES.name} has a line without a reason: {line}")
        program, call, *rest = difference.split("; ")
        listed[line] = Listed(program, *call.rsplit(":", 1), *rest)
    unlisted = [it for it in found if not any(line.speaks_of(it) for line in listed.values())]
    return unlisted, [line for line, it in listed.items() if it.is_stale(found, tried)]
