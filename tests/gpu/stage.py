"""Stages: commands that have a budget of seconds, and what became of them.

A stage that runs out of its time is stopped, its whole process group, and the others go on. Knows nothing of
what a stage does: it writes its results into a file as it goes, so that what it had is there.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

# To give back what it has set aside.
GRACE = 5.0


@dataclass(frozen=True)
class Stage:
    """A command; `seconds` is its budget."""

    name: str
    command: list[str]
    seconds: float


def run(stage: Stage, seconds: float, log: Path) -> dict:
    """Runs it for so long at most, its output in `log`, and says how it ended: outcome `done`, `failed`
    or `stopped`, the time that it took and, where it failed, the last that it said."""
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
            # Also what a stage that ended has left behind.
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
    """The whole group: asked first, as it may have something to undo."""
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
