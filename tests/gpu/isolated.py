"""Programs in a process of their own that may hang: each has a limit, and is killed hard when it is over.

Their output goes to files, so that nobody waits for a pipe that a child of theirs keeps open. Knows nothing of what
they do.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

# A process that is in the driver cannot die before the driver lets it; nobody waits longer for that.
DYING = 3.0


@dataclass(frozen=True)
class Ended:
    """`outcome` is `done`, `failed` or `stopped`; `said` its standard output, `detail` why it is not done."""

    outcome: str
    seconds: float
    said: str
    detail: str


def run(command: list[str], environment: dict[str, str], seconds: float, log: Path) -> Ended:
    """Runs it for so long at most; its standard error is added to `log`."""
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
            # Also what it has started, and also where whoever called is asked to stop.
            gone = kill(process)
    taken = time.monotonic() - start
    detail = {
        "done": "",
        "failed": f"ended with status {process.returncode}: {last(log)}",
        "stopped": f"stopped after {seconds:.0f} s" + ("" if gone else ", and does not die"),
    }
    return Ended(outcome, round(taken, 2), words.read_text(errors="replace"), detail[outcome])


def kill(process: subprocess.Popen) -> bool:
    """Ends the whole session; whether it is gone."""
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
