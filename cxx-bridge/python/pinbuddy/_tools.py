"""The program ``pinbuddy-tools``, which plans, advises, shows and looks at the machine. It needs neither torch nor a GPU.

Finds it and becomes it. Knows none of its options.
"""

import contextlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pinbuddy import _match, _output

COMMANDS = {
    "plan": "make a plan from a trace or snapshot: what to pin, and where each request goes",
    "plans": "list, show, move and remove the plans that BUDDY_PLAN=auto has made, and say which a command line has",
    "top": "show how pinned memory stands in programs that run with BUDDY_LIVE=1, and who else holds memory",
    "report": "show a trace or snapshot as a page: memory over time, a map of it, advice, settings to try",
    "advise": "say what to set for the program that a trace is of, and what is wrong in it",
    "explain": "say what a message of pinbuddy's means, and what to do about it",
    "trace": "write workloads as traces of pinned-memory requests, for replays",
    "simulate": "replay traces on models of allocators, with no CUDA and no PyTorch, and compare what they pin",
    "completions": "print a script that completes commands and options in a shell",
}
"""Its commands that need nothing of Python's, each in a line."""

PROGRAM = Path(__file__).parent / "bin" / "pinbuddy-tools"


def become(arguments: Sequence[str], typed: str = "pinbuddy") -> int:
    """Replaces this process, so that Ctrl-C and the exit status are the program's. It calls itself what was
    ``typed``. Returns only if that fails, with the exit status."""
    if not PROGRAM.is_file():
        return _output.lacks(PROGRAM.name)
    # Where standard output is closed there is nothing to flush.
    print(end="", flush=True)
    try:
        os.execv(PROGRAM, [typed, *_with_torch(list(arguments))])
    except OSError as error:
        to_do = f"chmod +x {PROGRAM}, or install it where programs may be run"
        print(f"{PROGRAM} cannot be started: {error.strerror}; to do: {to_do}", file=sys.stderr)
        return 1


def _with_torch(arguments: list[str]) -> list[str]:
    """With what ``plans`` asks of the torch beside it: its library, whose folder may have settings, and its version."""
    asks = arguments[:1] == ["plans"] and len(arguments) > 1
    spec = importlib.util.find_spec("torch") if asks else None
    if spec is None or spec.origin is None:
        return arguments
    library = _match.of_folder(Path(spec.origin).parent).library
    settings = [] if library is None else ["--library", str(library)]
    version: list[str] = []
    if arguments[1:2] == ["why"]:
        # Sources that are on the path are no installed package.
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = ["--torch", importlib.metadata.version("torch")]
    return ["plans", *settings, *arguments[1:2], *version, *arguments[2:]]


def machine(cuda: str | None, *options: str) -> str | None:
    """What ``doctor`` says of this machine, for a torch with this version of CUDA. ``None`` where the program cannot be
    started, which says nothing about the machine."""
    needed = ["--cuda", cuda] if cuda else []
    try:
        done = subprocess.run([PROGRAM, "doctor", *needed, *options], stdout=subprocess.PIPE, text=True, check=False)
    except OSError:
        return None
    # 1 is its verdict on the machine.
    return done.stdout if done.returncode in (0, 1) else None
