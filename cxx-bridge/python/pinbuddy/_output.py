"""What the command ``pinbuddy`` prints: to a reader who may leave early, to a disk that may be full."""

import argparse
import os
import sys
from typing import Any


class Parser(argparse.ArgumentParser):
    """Prints its help as all other text."""

    def print_help(self, file: Any = None) -> None:
        if status := put(self.format_help().rstrip("\n")):
            self.exit(status)


def put(text: str) -> int:
    """Prints ``text`` and a line's end. Returns the exit status: 1 if it could not be written, which is said.

    A reader that closes its pipe, as ``head`` does, has what it wanted.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _let_go()
    except OSError as error:
        _let_go()
        print(f"error: standard output takes no more: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def lacks(name: str) -> int:
    """Says that this wheel has no such file, as one that PyTorch's own build made. Returns the exit status."""
    to_do = "the plug-in's wheel has it, in an environment without the fork: pip install pinbuddy-*.whl"
    print(f"this build of pinbuddy has no {name}: {to_do}", file=sys.stderr)
    return 1


def _let_go() -> None:
    """Leaves nothing for Python to write, and to fail at, when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
