"""Runs programs of tests/programs, each in a fork of a process that has imported torch: `nursery.py ours|stock`.

Forked, since importing torch takes longer than most programs. CUDA is first used in the child, so that each starts cold. Each line of
standard input names a program, its arguments and its time limit; the answer is a line of JSON with its figures or its failure. A child
that hangs is killed with its own children.
"""

import importlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "gpu"))
import worker  # noqa: E402

# A child that is in the driver dies when that lets it go.
DYING = 3.0
STEP = 0.001
MOST_SAID = 1 << 16


def child(asked: dict, which: str, pipe: int) -> None:
    """Runs the program and says what it found."""
    try:
        worker.use_gpu()
        worker.require(which)
        said = {"figures": importlib.import_module(asked["program"]).run(**asked["with"])}
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


def main() -> None:
    which = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path += worker.SHARED
    import torch  # noqa: F401

    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.close(ours)
            # An end of the input is the parent's to see.
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            child(asked, which, theirs)
            sys.stderr.flush()
            os._exit(0)
        os.close(theirs)
        print(json.dumps(outcome(pid, ours, asked["seconds"])), file=answers, flush=True)
        os.close(ours)


if __name__ == "__main__":
    main()
