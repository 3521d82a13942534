"""Compiles C++ programs of tests, once for the same inputs.

What lies below target/python-tests has in its name the hash of its sources, of the command and of the torch that it is
compiled against: whoever needs the same program finds it, and one that has changed has another name.

usage: native.py SOURCE TORCH [FLAG...]   compiles one, and prints where it is
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).parent.parent.parent / "target/python-tests"
# This header differs between releases and forks; the version covers the rest of torch.
HEADER = "include/ATen/core/CachingHostAllocator.h"


def program(source: Path, torch: Path, *flags: str) -> Path:
    """The program of one source file, or of all in a folder, linked with the libraries of ``torch``, a package's folder.

    It contains no path of libtorch, so it runs with any torch of the same release."""
    sources = sorted(source.glob("*.cpp")) if source.is_dir() else [source]
    command = ["g++", "-std=c++20", "-w", *flags, f"-I{torch}/include", f"-I{torch}/include/torch/csrc/api/include"]
    # No symbol refers to libtorch_cuda.so, but CUDA needs it to be loaded.
    libraries = [f"-L{torch}/lib", "-Wl,--no-as-needed", "-ltorch", "-ltorch_cuda", "-ltorch_cpu", "-lc10"]
    libraries += ["-Wl,--allow-shlib-undefined", "-pthread", "-ldl"]
    inputs = [*sorted(sources[0].parent.glob("*.h")), *sources, torch / "version.py", torch / HEADER]
    hashed = hashlib.sha256("\0".join([*command, *libraries, str(source)]).encode())
    for file in inputs:
        hashed.update(file.read_bytes())
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = FOLDER / f"{source.stem}-{hashed.hexdigest()[:16]}"
    # A second process that needs it at the same time waits.
    with open(f"{made}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            objects = [f"{made}.{it.stem}.o" for it in sources]
            with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                list(pool.map(lambda it, to: compile([*command, "-c", str(it), "-o", to]), sources, objects))
            unfinished = made.with_suffix(".unfinished")
            compile([*command, *objects, *libraries, "-o", str(unfinished)])
            unfinished.rename(made)
            for it in objects:
                os.remove(it)
    return made


def compile(command: list[str]) -> None:
    """Runs a compiler, which is no program for the simulator."""
    if os.environ.get("PINBUDDY_TEST_REAL") == "1" and shutil.which(command[0]) is None:
        import pytest

        # A machine with a GPU may have only Python; elsewhere a missing compiler is a failure.
        pytest.skip(f"there is no {command[0]} on this machine")
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(program: Path, *arguments, timeout: float = 300, nice: int = 0, **variables) -> subprocess.CompletedProcess:
    """Runs a compiled program, with no BUDDY_ variable but those given."""
    from measure import environment

    return subprocess.run(
        [str(it) for it in (program, *arguments)],
        env=environment(**variables), capture_output=True, text=True, timeout=timeout, preexec_fn=lambda: os.nice(nice),
    )  # fmt: skip


if __name__ == "__main__":
    print(program(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute(), *sys.argv[3:]))
