"""Starts the programs that tests run in their own process.

A real start imports torch, which takes seconds of a core. A process that has torch already, and not yet our library, can fork one
in a fraction of that: `zygote.py`. What a program reads while torch is imported it cannot be told afterwards, so programs with
such settings are started for real, as are those of a fork wheel, whose torch has the library in it.
"""

import atexit
import fcntl
import functools
import os
import socket
import subprocess
import tempfile
import zlib
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
    "SIZES", "SNAPSHOT", "STEPS", "STREAMS", "TRACE",
)
# Where test processes find one another's zygotes.
SHARED = "PINBUDDY_TEST_ZYGOTES"
# For the zygote only: torch must not load our library, and numpy must not start threads, which children would lack.
WAITING = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OPENBLAS_NUM_THREADS": "1"}


def start(
    python: str, program: str, environment: dict[str, str], timeout: float, forked: bool, ends_wholly: bool = False
) -> subprocess.CompletedProcess:
    """Runs the program as ``python -c`` would, in this folder; ``forked`` where its settings allow it."""
    if forked and early_settings(environment) == EARLY:
        return Zygote.of(python, ends_wholly).run(program, environment, timeout)
    # In this folder, for importing `program.py`.
    return subprocess.run([python, "-c", program], cwd=HERE, env=environment, capture_output=True, text=True, timeout=timeout)


def early_settings(environment) -> dict[str, str]:
    """Settings that may be read while torch is imported, or before."""
    # pytest stores the test's name there.
    late = (*READ_LATE, *OF_PROGRAMS, SHARED, "PYTEST_")
    return {name: value for name, value in environment.items() if not name.startswith(late) or name in SETTINGS and BACKEND in value}


# Contents are written and looked at by one thread: on a busy machine several wait for each other longer than they work.
os.environ.setdefault("OMP_NUM_THREADS", "1")
EARLY = early_settings(os.environ)


@functools.cache
def shared() -> Path:
    """The folder of the zygotes, of the test process that was there first. They end with it: it holds a pipe open."""
    if SHARED not in os.environ:
        folder = tempfile.TemporaryDirectory()
        os.environ[SHARED] = folder.name
        os.mkfifo(f"{folder.name}/end")
        held = os.open(f"{folder.name}/end", os.O_RDWR)
        atexit.register(folder.cleanup)
        atexit.register(os.close, held)
    return Path(os.environ[SHARED])


class Zygote:
    """The process that has imported torch: one for each interpreter, which all test processes use."""

    @classmethod
    def of(cls, python: str, ends_wholly: bool = False) -> "Zygote":
        folder = shared() / f"{zlib.crc32(python.encode()):x}{'-whole' if ends_wholly else ''}"
        folder.mkdir(exist_ok=True)
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return cls(folder, python, ends_wholly)

    def __init__(self, folder: Path, python: str, ends_wholly: bool):
        self.path = str(folder / "zygote")
        # A program that forks what `python` would run: for programs that others start, by this name. Not for settings that are
        # read while torch is imported.
        self.python = folder / "bin/python"
        if self.python.exists():
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, open(folder.parent / "end") as end:
            listener.bind(self.path)
            listener.listen(64)
            subprocess.Popen(
                [python, str(HERE / "zygote.py"), str(listener.fileno())],
                pass_fds=[listener.fileno()],
                env=EARLY | WAITING | ({"PINBUDDY_TEST_END": "whole"} if ends_wholly else {}),
                stdin=end,
                stdout=subprocess.DEVNULL,
            )
        self.python.parent.mkdir()
        script = self.python.with_name("script")
        script.write_text(f'#!/bin/sh\nexec "{python}" -IS "{HERE}/forked.py" "{self.path}" "$0" "$@"\n')
        script.chmod(0o755)
        script.rename(self.python)

    def run(self, program: str, environment: dict[str, str], timeout: float) -> subprocess.CompletedProcess:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
            child = Child(self.path, program, environment, str(HERE), [0, out.fileno(), err.fileno()], [])
            child.connection.settimeout(timeout)
            try:
                status = child.wait()
            except TimeoutError:
                raise subprocess.TimeoutExpired(program, timeout) from None
            for it in (out, err):
                it.seek(0)
            return subprocess.CompletedProcess(program, status, out.read(), err.read())


@functools.cache
def tells_words(python: str) -> bool:
    """Whether what others start has its words in /proc/self/cmdline: a kernel without CONFIG_CHECKPOINT_RESTORE leaves the zygote's."""
    command = [Zygote.of(python).python, "-c", "print(open('/proc/self/cmdline').read())"]
    return "\0-c\0" in subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
