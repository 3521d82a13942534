"""Starts the programs that tests run in their own process.

A real start imports torch, which takes seconds of a core. A process that has torch already, and not yet our library,
can fork one in a fraction of that: `zygote.py`. What a program reads while torch is imported it cannot be told
afterwards, so programs with such settings are started for real, as are those of a fork wheel, whose torch has the
library in it.
"""

import atexit
import os
import signal
import socket
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from forked import Child

HERE = Path(__file__).parent
# Of PyTorch's settings one is read while torch is imported: which allocator there is.
SETTINGS, BACKEND = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"), "backend:"
# Variables that our library reads when it is loaded, or the simulator at the first CUDA call, or PyTorch's allocators at their first
# request (`test_start.py` holds the last to it).
READ_LATE = (
    "BUDDY_", "PINBUDDY_SITE", "PINBUDDY_SIM_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", *SETTINGS,
    # Where packages are found, the plug-in among them, but no other torch; and whether torch looks for it.
    "PYTHONPATH", "TORCH_DEVICE_BACKEND_AUTOLOAD",
    # At the first request of device memory.
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
)
# Variables that tests' own programs read. A name that is missing here costs a real start.
OF_PROGRAMS = (
    "PINBUDDY_TEST_TRACE", "PYTHON_EXEC", "CHANGE", "CLEAR", "COLUMNS", "EPOCHS", "EVALUATES", "FILE", "KIND", "LIVE", "SEED",
    "SIZES", "SNAPSHOT", "STEPS", "STREAMS", "TRACE", "VARY",
)
# For the zygote only: torch must not load our library, and numpy must not start threads, which children would lack.
WAITING = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OPENBLAS_NUM_THREADS": "1"}


def start(
    python: str, program: str, environment: dict[str, str], timeout: float, forked: bool, ends_wholly: bool = False
) -> subprocess.CompletedProcess:
    """Runs the program as ``python -c`` would, in this folder; ``forked`` where its settings allow it."""
    if forked and early_settings(environment) == EARLY:
        return Zygote.of(python, ends_wholly).run(program, environment, timeout)
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
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(late) or name in SETTINGS and BACKEND in value
    }


# Contents are written and looked at by one thread: on a busy machine several wait for each other longer than they work.
os.environ.setdefault("OMP_NUM_THREADS", "1")
EARLY = early_settings(os.environ)


class Zygote:
    """The process that has imported torch: one for each interpreter and test process."""

    running: dict[tuple[str, bool], "Zygote"] = {}

    @classmethod
    def of(cls, python: str, ends_wholly: bool = False) -> "Zygote":
        key = python, ends_wholly
        if key not in cls.running:
            cls.running[key] = cls(*key)
        return cls.running[key]

    def __init__(self, python: str, ends_wholly: bool):
        self.folder = tempfile.TemporaryDirectory()
        self.path = f"{self.folder.name}/zygote"
        # A program that forks what `python` would run: for programs that others start, by this name. Not for settings that are
        # read while torch is imported.
        self.python = Path(self.folder.name) / "bin/python"
        self.python.parent.mkdir()
        self.python.write_text(f'#!/bin/sh\nexec "{python}" -IS "{HERE}/forked.py" "{self.path}" "$@"\n')
        self.python.chmod(0o755)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.path)
            listener.listen(64)
            self.process = subprocess.Popen(
                [python, str(HERE / "zygote.py"), str(listener.fileno())],
                pass_fds=[listener.fileno()],
                env=EARLY | WAITING | ({"PINBUDDY_TEST_END": "whole"} if ends_wholly else {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self.end)

    def end(self) -> None:
        """Closes its standard input, which ends the process."""
        self.process.communicate()
        self.folder.cleanup()

    def run(self, program: str, environment: dict[str, str], timeout: float) -> subprocess.CompletedProcess:
        """As `subprocess.run` with its output captured."""
        (out, to_out), (err, to_err) = os.pipe(), os.pipe()
        try:
            child = Child(self.path, program, environment, str(HERE), [0, to_out, to_err])
        finally:
            os.close(to_out)
            os.close(to_err)
        with ThreadPoolExecutor(2) as pool:
            read = [pool.submit(open(it, encoding="utf-8").read) for it in (out, err)]
            late = wait(read, timeout).not_done
            if late:
                os.kill(child.id, signal.SIGKILL)
        status = child.wait()
        if late:
            raise subprocess.TimeoutExpired(program, timeout)
        return subprocess.CompletedProcess(program, status, *(it.result() for it in read))
