"""Runs programs of this folder, each in a fork of a worker (tests/gpu) that has imported torch.

Forked, since importing torch takes longer than most programs. CUDA is first used in the child, so that each starts cold. A child that
hangs is killed with its own children.
"""

import importlib
import json
import os
import signal
import sys
import time
import traceback

FORKS = True
# A child that is in the driver dies when that lets it go.
DYING = 3.0
STEP = 0.001
MOST_SAID = 1 << 16


def ready(which: str) -> None:
    from program import use_gpu
    from worker import require

    use_gpu()
    require(which)


def child(program: str, arguments: dict, which: str, pipe: int) -> None:
    """Runs the program and says what it found."""
    try:
        ready(which)
        said = {"figures": importlib.import_module(program).run(**arguments)}
    except Exception:
        said = {"error": traceback.format_exc(limit=-3)}
    os.write(pipe, json.dumps(said).encode())


def wait(pid: int, seconds: float) -> int | None:
    """The status that it ends with, or None where it does not within that time."""
    end = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            return None
        time.sleep(STEP)


def outcome(pid: int, pipe: int, limit: float) -> dict:
    """Waits for the child, and tidies up behind it."""
    status = wait(pid, limit)
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if status is None:
        alive = wait(pid, DYING) is None
        return {"error": f"stopped after {limit:.0f} s" + (", and does not die" if alive else "")}
    # All of it is there: the child has ended.
    os.set_blocking(pipe, False)
    try:
        said = json.loads(os.read(pipe, MOST_SAID))
    except (BlockingIOError, json.JSONDecodeError):
        return {"error": f"ended with status {status} and said nothing"}
    if "error" not in said and status != 0:
        return {"error": f"ended with status {status} after it had said all"}
    return said


def run(program: str, arguments: dict, which: str, seconds: float) -> dict:
    """Its figures, or how it failed within so much time."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.close(ours)
        # The worker's input and its end are not the program's to see.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        child(program, arguments, which, theirs)
        sys.stderr.flush()
        os._exit(0)
    os.close(theirs)
    try:
        return outcome(pid, ours, seconds)
    finally:
        os.close(ours)
