"""Starts the programs that tests run in their own process.

A real start imports torch, which takes seconds of a core. A process that has torch already, and not yet our library,
can fork one in a fraction of that: `zygote.py`. What a program reads while torch is imported it cannot be told
afterwards, so programs with such settings are started for real, as are those of a fork wheel, whose torch has the
library in it.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

HERE = Path(__file__).parent
# Variables that our library reads when it is loaded, or the simulator at the first CUDA call.
READ_LATE = ("BUDDY_", "PINBUDDY_SIM_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
# Variables that tests' own programs read. A name that is missing here costs a real start.
OF_PROGRAMS = (
    "CHANGE", "CLEAR", "EPOCHS", "EVALUATES", "FAILS", "FILE", "GROWS", "KIND", "LIVE", "RUNS", "SEED", "SIZES", "SNAPSHOT", "STEPS",
    "STREAMS", "TRACE", "VARY",
)
# For the zygote only: torch must not load our library, and numpy must not start threads, which children would lack.
WAITING = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OPENBLAS_NUM_THREADS": "1"}


def start(
    python: str, program: str, environment: dict[str, str], timeout: float, forked: bool
) -> subprocess.CompletedProcess:
    """Runs the program as ``python -c`` would, in this folder; ``forked`` where its settings allow it."""
    if forked and early_settings(environment) == EARLY:
        if python not in Zygote.running:
            Zygote.running[python] = Zygote(python)
        return Zygote.running[python].run(program, environment, timeout)
    return subprocess.run(
        [python, "-c", program],
        # For importing `program.py`.
        cwd=HERE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def early_settings(environment) -> dict[str, str]:
    """Settings that may be read while torch is imported, or before."""
    # pytest stores the test's name there.
    late = (*READ_LATE, *OF_PROGRAMS, "PYTEST_")
    return {name: value for name, value in environment.items() if not name.startswith(late)}


EARLY = early_settings(os.environ)


class Zygote:
    """The process that has imported torch: one for each interpreter and test process."""

    running: dict[str, "Zygote"] = {}

    def __init__(self, python: str):
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [python, str(HERE / "zygote.py"), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=EARLY | WAITING,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self.end)

    def end(self) -> None:
        """Closes the socket, which ends the process."""
        self.control.close()
        self.process.wait()

    def run(self, program: str, environment: dict[str, str], timeout: float) -> subprocess.CompletedProcess:
        """As `subprocess.run` with its output captured."""
        request = {"program": program, "environment": environment, "folder": str(HERE)}
        (out, to_out), (err, to_err) = os.pipe(), os.pipe()
        try:
            message = json.dumps(request).encode()
            socket.send_fds(self.control, [message], [0, to_out, to_err])
        finally:
            os.close(to_out)
            os.close(to_err)
        child = int(self.receive())
        with ThreadPoolExecutor(2) as pool:
            read = [pool.submit(open(it, encoding="utf-8").read) for it in (out, err)]
            late = wait(read, timeout).not_done
            if late:
                os.kill(child, signal.SIGKILL)
        status = int(self.receive())
        if late:
            raise subprocess.TimeoutExpired(program, timeout)
        return subprocess.CompletedProcess(program, status, *(it.result() for it in read))

    def receive(self) -> bytes:
        message = self.control.recv(64)
        if not message:
            raise RuntimeError(f"zygote.py ended with status {self.process.wait()}; it says why on standard error")
        return message
