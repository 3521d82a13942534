"""Runs programs that may hang, each in its own process with a time limit, after which it is killed.

Their output goes to files, so that a child that keeps a pipe open does not block. Knows nothing of what they do.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

# A process in a driver call cannot die before the call returns; wait no longer than this.
DYING = 3.0


@dataclass(frozen=True)
class Ended:
    """`outcome` is `done`, `failed` or `stopped`; `said` is its standard output, `detail` the reason for a failure."""

    outcome: str
    seconds: float
    said: str
    detail: str


def run(command: list[str], environment: dict[str, str], seconds: float, log: Path) -> Ended:
    """Runs it for at most `seconds`; appends its standard error to `log`."""
    start = time.monotonic()
    words = log.with_suffix(".said")
    with words.open("wb") as output, log.open("ab") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment, start_new_session=True
        )
        try:
            outcome = "done" if process.wait(seconds) == 0 else "failed"
        except subprocess.TimeoutExpired:
            outcome = "stopped"
        finally:
            # Kills its children, too, also if the caller is interrupted.
            gone = kill(process)
    taken = time.monotonic() - start
    detail = {
        "done": "",
        "failed": f"ended with status {process.returncode}: {last(log)}",
        "stopped": f"stopped after {seconds:.0f} s" + ("" if gone else ", and does not die"),
    }
    return Ended(outcome, round(taken, 2), words.read_text(errors="replace"), detail[outcome])


def kill(process: subprocess.Popen) -> bool:
    """Kills the whole session; returns whether it is gone."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        process.wait(DYING)
    except subprocess.TimeoutExpired:
        return False
    return True


def last(log: Path) -> str:
    """The last line of a log."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
