"""What examples share that run themselves with stock and with pinbuddy, each time in a process of its own, and compare."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

MIB = 1 << 20
STOCK = {"BUDDY_DISABLE": "1"}


def run(measure: Callable[[], dict], compare: Callable[[], list[str]]) -> None:
    """An example's main function: prints the lines of `compare`; with `--measure` what `measure` returns, as JSON."""
    print(json.dumps(measure()) if "--measure" in sys.argv else "\n".join(compare()))


def figures(file: str, **settings: str) -> dict:
    """What `measure` of this file returns, with these settings of pinbuddy and no others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BUDDY_")}
    done = subprocess.run([sys.executable, file, "--measure"], env=kept | settings, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"with {settings} it ended with {done.returncode}, as the lines above say")
    return json.loads(done.stdout.splitlines()[-1])


def require(holds: bool, what: str, seen: object) -> None:
    """Ends with another status than 0 where something is not so."""
    if not holds:
        raise SystemExit(f"expected: {what}; found: {seen}")
