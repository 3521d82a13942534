"""Stages: commands with a time budget, and their outcomes.

A stage that exceeds its time is stopped with its whole process group, and the others continue. Stages write results
to a file as they go, so that partial results are kept. Knows nothing of what a stage does.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

# Seconds for a stage to give back reserved pages.
GRACE = 5.0


@dataclass(frozen=True)
class Stage:
    """A command; `seconds` is its budget."""

    name: str
    command: list[str]
    seconds: float


def run(stage: Stage, seconds: float, log: Path) -> dict:
    """Runs it for at most its budget, with its output in `log`. Returns the outcome (`done`, `failed` or
    `stopped`), the time and, after a failure, its last output."""
    start = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            stage.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            outcome = "done" if process.wait(seconds) == 0 else "failed"
        except subprocess.TimeoutExpired:
            outcome = "stopped"
        finally:
            # Also ends processes that a finished stage has left.
            _stop(process)
    taken = time.monotonic() - start
    said = {
        "done": "",
        "failed": f"status {process.returncode}: {_last(log)}",
        "stopped": f"stopped after {seconds:.0f} s: {_last(log)}",
    }
    return {
        "outcome": outcome,
        "seconds": round(taken, 1),
        "budget_s": round(seconds, 1),
        "detail": said[outcome],
    }


def _stop(process: subprocess.Popen) -> None:
    """Stops the whole process group, first by SIGTERM, since it may have something to undo."""
    if process.poll() is None:
        _signal(process.pid, signal.SIGTERM)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            pass
    _signal(process.pid, signal.SIGKILL)
    process.wait()


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def _last(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
