"""``python -m pinbuddy``: the version, the settings, and how its memory stands; whether it is in
place (``doctor``); an example to run (``try``); whether a wheel is whole (``verify-wheel``); where the library for a C++ program is (``library``); and, without
torch, plans and advice from traces (``plan``, ``advise``, ``report``), what other processes show (``top``), and what a
message means (``explain``). Also installed as the command ``pinbuddy``."""

import difflib
import importlib.util
import json
import sys
from argparse import SUPPRESS
from collections.abc import Sequence
from pathlib import Path

import pinbuddy
from pinbuddy import _doctor, _match, _output, _read, _summary, _tools, _try, _verify
from pinbuddy._types import Setting


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the report; returns the exit status."""
    typed = "python -m pinbuddy" if Path(sys.argv[0]).name == "__main__.py" else "pinbuddy"
    words = _command_first(sys.argv[1:] if arguments is None else list(arguments))
    if words and words[0] in _tools.COMMANDS:
        return _tools.become(words, typed)
    if words and words[0] == "try":
        return _try.become(words[1:], typed)
    if words and words[0] == "verify-wheel":
        return _verify.run(words[1:], typed)
    parser = _output.Parser(
        prog=typed,
        description="What pinbuddy's pinned-memory allocator is set to, and how its memory stands "
        "in a process that has just begun. Within a program: pinbuddy.memory_summary().",
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON, for machines")
    parser.add_argument("--version", action="store_true", help="print PyTorch's version and pinbuddy's")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    doctor_about = "say whether pinbuddy is in place, and what this machine offers for pinned memory"
    doctor = commands.add_parser("doctor", help=doctor_about, description=_sentence(doctor_about))
    doctor.add_argument("--json", action="store_true", default=SUPPRESS, help="one line of JSON, for machines")
    commands.add_parser("try", help=_try.ABOUT, add_help=False)
    commands.add_parser("verify-wheel", help=_verify.ABOUT, add_help=False)
    library_about = "print the library for a C++ program to load"
    library = commands.add_parser("library", help=library_about, description=_sentence(library_about))
    library.add_argument(
        "--torch",
        type=Path,
        metavar="FOLDER",
        help="the torch package or unpacked libtorch that the program uses [default: the one that "
        "Python imports]",
    )
    for command, about in _tools.COMMANDS.items():
        commands.add_parser(command, help=about, add_help=False)
    first = next((it for it in words if not it.startswith("-")), None)
    if first == "help":
        words = ["--help"]
    elif first is not None and first not in commands.choices:
        parser.error(_unknown(first, list(commands.choices)))
    options = parser.parse_args(words)
    try:
        if options.command == "doctor":
            return _print_doctor(options.json)
        if options.command == "library":
            return _print_library(options.torch)
        if options.version:
            return _output.put(_version())
        return _print_settings(options.json)
    except ImportError as error:
        print(f"{error}. What is in place, and what to do: python -m pinbuddy doctor", file=sys.stderr)
        return 1


def _sentence(about: str) -> str:
    """A command's line in the list of commands, as its own help begins."""
    return f"{about[0].upper()}{about[1:]}."


def _command_first(words: list[str]) -> list[str]:
    """Options may stand before a command, which takes them behind it."""
    at = next((at for at, word in enumerate(words) if not word.startswith("-")), 0)
    return [*words[at : at + 1], *words[:at], *words[at + 1 :]]


def _unknown(word: str, commands: list[str]) -> str:
    """What to say where a command stands that is none."""
    near = difflib.get_close_matches(word, commands, n=1, cutoff=0.5)
    if near:
        return f"there is no command {word!r}; did you mean {near[0]!r}?"
    if Path(word).is_file():
        return f"there is no command {word!r}; to look at a trace or a snapshot: report {word}"
    return f"there is no command {word!r}; there are {', '.join(commands)}"


def _version() -> str:
    """Also of a plug-in that has no torch beside it."""
    try:
        return pinbuddy.version()
    except ImportError:
        plugin = _match.manifest()
        if plugin is None or importlib.util.find_spec("torch") is not None:
            raise
        return str(plugin["version"])


def _print_settings(as_json: bool) -> int:
    if as_json:
        report = {
            "version": pinbuddy.version(),
            "enabled": pinbuddy.enabled(),
            "config": pinbuddy.config(),
            "stats": pinbuddy.stats(),
        }
        return _output.put(json.dumps(report))
    config = pinbuddy.config()
    # The plug-in's own version where its library was not loaded: there are no settings then.
    parts = [f"{'torch' if config else 'pinbuddy'} {pinbuddy.version()}"]
    if config:
        parts.append(settings_table(config))
    # A program's summary does not look, since that begins CUDA, and no forked child can use it then.
    known = pinbuddy.stats()
    sees_no_gpu = known["state"] == "on" and _read.gpus() == 0
    summary = _summary.NO_GPU if sees_no_gpu else _summary.summary(known)
    return _output.put("\n\n".join([*parts, summary]))


def _print_doctor(as_json: bool) -> int:
    report = _doctor.examine()
    if as_json:
        machine = _tools.machine(report.cuda, "--json")
        written = _output.put(json.dumps({**report.as_data(), "machine": machine and json.loads(machine)}))
    else:
        machine = _tools.machine(report.cuda)
        written = _output.put("\n\n".join([*([machine.rstrip()] if machine else []), report.table()]))
    return written if report.served else 1


def _print_library(folder: Path | None) -> int:
    if folder is None:
        import torch

        match = _match.of_import(torch)
    else:
        match = _match.of_folder(folder)
    if match.library is None:
        print(f"no library of pinbuddy's fits: {match.why}", file=sys.stderr)
        return 1
    return _output.put(str(match.library))


_FILES = ("BUDDY_TRACE", "BUDDY_PLAN", "BUDDY_DEVICE_PLAN", "BUDDY_DEVICE_TRACE")


def settings_table(config: dict[str, Setting]) -> str:
    """A line for each variable: its value, where it came from, and what is wrong with what was set."""
    rows = [("variable", "value", "origin")]
    for name, it in config.items():
        origin = f"site {it['file']}" if it["origin"] == "site" else it["origin"]
        rows.append((name, _value(name, it["value"]), f"{origin}: {it['remark']}" if it["remark"] else origin))
    names, values = (max(len(row[at]) for row in rows) for at in (0, 1))
    return "\n".join(f"{row[0]:<{names}}  {row[1]:<{values}}  {row[2]}" for row in rows)


def _value(name: str, value: int | str | bool | None) -> str:
    """As it would be set."""
    if value is None:
        return "no file" if name in _FILES else "automatic"
    return str(int(value)) if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    raise SystemExit(main())
