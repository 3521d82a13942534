"""Runs a program of a sweep, with pinbuddy or with stock, and says what became of it."""

import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import plans
from faults.cases import with_all
from faults.programs import HEAD, PROGRAMS, SLOTS
from measure import environment
from release import block_bytes
from start import start

# Seconds for a program, and for a second try: on a busy machine one that takes a second may take a minute.
PATIENCE = (60, 300)
FAULTS = "PINBUDDY_SIM_FAULT_PLAN"


@dataclass
class Outcome:
    status: int | str
    stderr: str = ""
    steps: dict[str, str] = field(default_factory=dict)
    # How often each call was made: in all, and until a step had ended, in the order of steps.
    calls: dict[str, int] = field(default_factory=dict)
    reached: dict[str, dict[str, int]] = field(default_factory=dict)
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

    def step_of(self, entry: str, call: int) -> str | None:
        """The step in which a call was made; None where it was made in none, or none is known."""
        return next((name for name, calls in self.reached.items() if calls.get(entry, 0) >= call), None)


@cache
def folder() -> tempfile.TemporaryDirectory:
    """For the programs' files, two of which are there at once; gone when this process ends."""
    made = tempfile.TemporaryDirectory(prefix="pinbuddy-faults-")
    offsets = [0, *itertools.accumulate(SLOTS)]
    slots = [[size * plans.MIB, 0, offset * plans.MIB] for size, offset in zip(SLOTS, offsets)]
    plans.write(Path(made.name, "plan"), [offsets[-1] * plans.MIB], slots, [[*range(len(SLOTS))]], threshold=plans.MIB)
    Path(made.name, "nodes").write_text("0-1\n")
    return made


@cache
def device_plan(program: str) -> Path:
    """The plan that a run of the program without faults has recorded."""
    file = Path(folder().name, f"{program}.json")
    outcome = _run(sys.executable, program, "", file)
    if outcome.findings() or not file.exists():
        raise AssertionError(f"{program} was not recorded: {outcome}")
    return file


def run(python: str, program: str, plan: str = "") -> Outcome:
    """``plan``: which calls fail."""
    is_planned = "BUDDY_DEVICE_PLAN" in PROGRAMS[program][1]
    return _run(python, program, plan, device_plan(program) if is_planned else None)


def _run(python: str, program: str, plan: str, device: Path | None) -> Outcome:
    text, settings, _ = PROGRAMS[program]
    files = {name: Path(folder().name, name) for name in ("plan", "nodes", "trace")} | {"device plan": device}
    settings = {name: value.format_map(files) for name, value in settings.items()}
    # The first rule that speaks of a call counts.
    rules = [it for it in (plan, settings.pop(FAULTS, "")) if it]
    variables = environment(**settings) | {FAULTS: ";".join(rules)}
    for seconds in PATIENCE:
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = start(python, HEAD + text, variables, timeout=seconds, forked=True)
            break
    else:
        return Outcome("hangs")
    lines = done.stdout.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        return Outcome(done.returncode or "nothing said", done.stderr)
    told = json.loads(lines[-1])
    calls_of = lambda statistics: with_all(statistics["calls"])
    before, left = told["before"], told["left"]
    return Outcome(
        done.returncode, done.stderr, told["steps"], calls_of(before),
        {name: calls_of(it) for name, it in told["reached"].items()}, before["injected"], told["audit"],
        left["hazards"], block_bytes(left) - told["known"],
    )
