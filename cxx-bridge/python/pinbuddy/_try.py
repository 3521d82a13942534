"""``pinbuddy try``: the first program to try, which travels in the wheel: ``examples/offload.py`` of a checkout.

Finds it and becomes it, with the variables that a user would set. Imports no torch: they are read when it is imported.
"""

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pinbuddy import _output

ABOUT = "run a small program that offloads activations, with stock and with pinbuddy, and see when memory is pinned"
"""The command, in a line."""

PROGRAM = Path(__file__).parent / "examples" / "offload.py"


def become(arguments: Sequence[str], typed: str = "pinbuddy") -> int:
    """Replaces this process with the program. Returns only if it or torch is not there, with the exit status."""
    parser = _output.Parser(
        prog=f"{typed} try",
        description="Runs a small program whose activations wait in pinned memory, in sizes that vary from step to step, "
        "with PyTorch's own allocator first and then with pinbuddy. "
        f"It is {PROGRAM}: read it, or copy it.",
        epilog="Further arguments are the program's: --steps, --layers, --width, --loading.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--plan",
        metavar="FILE",
        help="as BUDDY_PLAN=FILE: the first run is recorded and writes the plan, each later one starts with it",
    )
    options, rest = parser.parse_known_args(arguments)
    if not PROGRAM.is_file():
        return _output.lacks(PROGRAM.name)
    if importlib.util.find_spec("torch") is None:
        to_do = "install torch in this environment; python -m pinbuddy doctor says which ones the plug-in fits"
        print(f"the example needs torch, which is not here: {to_do}", file=sys.stderr)
        return 1
    variables = dict(os.environ)
    if options.plan is not None:
        variables["BUDDY_PLAN"] = options.plan
    # Where standard output is closed there is nothing to flush.
    print(end="", flush=True)
    os.execve(sys.executable, [sys.executable, os.fspath(PROGRAM), "--beside-stock", *rest], variables)
