"""Commands with a time limit, and how they end. A stage is one; so is each program that a stage starts and that may hang.

A command that exceeds its time is stopped with its whole session, and the caller goes on. Its output is in files, so that a child that
keeps a pipe open does not block.
"""

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

# Seconds for a stage to give back reserved pages, and for a process in a driver call to die.
GRACE = 5.0


@dataclass(frozen=True)
class Ended:
    """`outcome` is `done`, `failed` or `stopped`; `detail` the reason for a failure; `said` its standard output, where that was kept."""

    outcome: str
    seconds: float
    detail: str
    said: str = ""


def run(command: list[str], seconds: float, log: Path, environment: dict | None = None, keep: bool = False) -> Ended:
    """Runs it for at most `seconds`, with its output in `log`; with `keep` its standard output is returned instead."""
    start, said = time.monotonic(), log.with_suffix(".said")
    with log.open("wb") as errors, said.open("wb") as words:
        output = words if keep else errors
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment, start_new_session=True)
        try:
            outcome = "done" if process.wait(seconds) == 0 else "failed"
        except subprocess.TimeoutExpired:
            outcome = "stopped"
        finally:
            # Ends what a finished command has left, too.
            gone = stop(process)
    details = {
        "done": "",
        "failed": f"status {process.returncode}: {last(log)}",
        "stopped": f"stopped after {seconds:.0f} s{'' if gone else ', and does not die'}: {last(log)}",
    }
    text = said.read_text(errors="replace")
    said.unlink()
    return Ended(outcome, round(time.monotonic() - start, 1), details[outcome], text)


def stop(process: subprocess.Popen) -> bool:
    """Stops the whole session, first by SIGTERM, since it may have something to undo; returns whether it is gone."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if number == signal.SIGKILL or process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    return process.poll() is not None


def last(log: Path) -> str:
    """The last line of a log."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
