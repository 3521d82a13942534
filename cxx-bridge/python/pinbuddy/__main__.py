"""``python -m pinbuddy``: the fork's version, its settings, and how its memory stands."""

import argparse
import json
from collections.abc import Sequence

import pinbuddy
from pinbuddy._types import Setting


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the report; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m pinbuddy",
        description="What pinbuddy's pinned-memory allocator is set to, and how its memory stands "
        "in a process that has just begun. Within a program: pinbuddy.memory_summary().",
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON, for machines")
    if parser.parse_args(arguments).json:
        report = {
            "version": pinbuddy.version(),
            "enabled": pinbuddy.enabled(),
            "config": pinbuddy.config(),
            "stats": pinbuddy.stats(),
        }
        print(json.dumps(report))
    else:
        print(f"torch {pinbuddy.version()}\n")
        print(settings_table(pinbuddy.config()), end="\n\n")
        print(pinbuddy.memory_summary())
    return 0


def settings_table(config: dict[str, Setting]) -> str:
    """A line for each variable: its value and where it came from."""
    origins = {"rejected": "rejected: the default stands in"}
    rows = [("variable", "value", "origin")]
    rows += [
        (name, _value(it["value"]), origins.get(it["origin"], it["origin"]))
        for name, it in config.items()
    ]
    names, values = (max(len(row[at]) for row in rows) for at in (0, 1))
    return "\n".join(f"{row[0]:<{names}}  {row[1]:<{values}}  {row[2]}" for row in rows)


def _value(value: int | str | bool | None) -> str:
    """As it would be set."""
    if value is None:
        return "automatic"
    return str(int(value)) if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    raise SystemExit(main())
