#!/usr/bin/env python3
"""Writes the tables of documents from the committed runs (docs/results), and the README's picture.

usage: ci/tables.py [--check]      (--check: change nothing, and fail if something would change)

A document has a table between `<!-- table: NAME -->` and `<!-- end -->`; docs/tables.toml says what is in it. In a cell,
`{PATH|DIGITS}` is a figure of the table's run, `NAME@PATH` one of docs/results/NAME.json. A path's keys are parted by `/`;
a space in one may be written `_` and a `/` in one `\\`; in a list, a key is a position or the `name` of an item. `A:B` is A
over B, `*FACTOR` changes the unit. DIGITS with `,` groups thousands and with `~` adds the spread of the rounds; a third part
stands where the run has no such figure. Runs have four significant digits, so noughts behind them are not shown.

Every other table with figures is listed in docs/tables.toml with the reason why no run has them.
"""

import functools
import json
import math
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^<!-- table: (\S+) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"\{([^|{}]+)\|(,?)(\d)(~?)(?:\|([^{}]*))?\}")
UNITS = {"%", "ms", "s", "µs", "ns", "KiB", "MiB", "GiB", "MB", "GB", "bytes", "seconds", "minutes", "times", "to"}


class Wrong(Exception):
    """What is wrong with a document or with docs/tables.toml."""


@functools.cache
def run(name: str) -> dict:
    file = ROOT / f"docs/results/{name}.json"
    if not file.is_file():
        raise Wrong(f"docs/tables.toml: there is no docs/results/{name}.json")
    return json.loads(file.read_text())


def inside(value, key: str):
    key = key.replace("\\", "/")
    if isinstance(value, list):
        if key.isdigit():
            return value[int(key)] if int(key) < len(value) else None
        return next((it for it in value if it.get("name") == key.replace("_", " ")), None)
    return value.get(key, value.get(key.replace("_", " "))) if isinstance(value, dict) else None


def figure(name: str, path: str) -> float | None:
    """The number that is there."""
    other, _, path = path.rpartition("@")
    path, _, factor = path.partition("*")
    numbers = [functools.reduce(inside, one.split("/"), run(other or name)) for one in path.split(":")]
    if any(isinstance(it, bool) or not isinstance(it, (int, float)) for it in numbers):
        return None
    return functools.reduce(lambda of, over: of / over, numbers) * float(factor or 1)


def shown(value: float, grouped: str, digits: str) -> str:
    text = f"{value:{grouped}.{digits}f}"
    while "." in text and text[-1] in "0." and sum(it.isdigit() for it in text.lstrip("0.")) > 4:
        text = text[:-1]
    return text


def cell(name: str, text: str) -> str:
    def number(match: re.Match) -> str:
        path, grouped, digits, spread, none = match.groups()
        value = figure(name, path)
        if value is None:
            if none is not None:
                return none
            raise Wrong(f"docs/tables.toml: {name} has no {path}")
        other, at, own = path.rpartition("@")
        ends = [figure(name, f"{other}{at}context/spread/{own}/{end}") for end in (0, 1)] if spread else []
        if None in ends:
            raise Wrong(f"docs/tables.toml: {name} has no spread of {path}")
        found, *ends = (shown(it, grouped, digits) for it in (value, *ends))
        return f"{found} ({ends[0]} to {ends[1]})" if ends else found

    return FIGURE.sub(number, text)


def table(made: dict) -> str:
    """A row is its name and its cells, or its name and what stands for `$` in the table's cells."""
    lines = ["| " + " | ".join(made["columns"]) + " |", "|" + "---|" * len(made["columns"])]
    for first, *rest in made["rows"]:
        if "cells" in made and len(rest) == 1 and "{" not in rest[0]:
            rest = [it.replace("$", rest[0]) for it in made["cells"]]
        if len(rest) + 1 != len(made["columns"]):
            raise Wrong(f"docs/tables.toml: {first!r} has {len(rest)} cells, and {len(made['columns']) - 1} were expected")
        lines.append("| " + " | ".join([first, *(cell(made["run"], it) for it in rest)]) + " |")
    return re.sub(r"(?<=\|) (?= \|)", "", "\n".join(lines))


def written(text: str, tables: dict, used: set) -> str:
    """A document with its tables as they should be."""

    def block(match: re.Match) -> str:
        if match[1] not in tables:
            raise Wrong(f"docs/tables.toml has no table {match[1]}")
        used.add(match[1])
        return f"<!-- table: {match[1]} -->\n{table(tables[match[1]])}\n<!-- end -->"

    return BLOCK.sub(block, text)


def is_figure(text: str) -> bool:
    """`0.36`, `1,024 MiB`, `0.36 (0.35 to 0.36)`, `5.3 to 8.9`, `2, 1`: a number, with units at most."""
    words = [it.rstrip(",;") for it in re.sub(r"[*()]", " ", text).split()]
    numbers = [bool(re.fullmatch(r"-*\d[\d,.]*", it)) for it in words]
    return bool(words) and numbers[0] and all(number or it in UNITS for number, it in zip(numbers, words))


def unmeasured(text: str) -> list[str]:
    """The heads of tables that have figures and are of no run. Blocks of code have none."""
    found = []
    text = re.sub(r"^```.*?^```", "", BLOCK.sub("", text), flags=re.MULTILINE | re.DOTALL)
    for head, rows in re.findall(r"^(\|.*)\n\|[-| ]+\|\n((?:\|.*\n?)*)", text, re.MULTILINE):
        if any(is_figure(it) for row in rows.splitlines() for it in row.strip("| ").split("|")[1:]):
            found.append(head)
    return found


def documents() -> list[Path]:
    """All but the changelog, which tells of the past."""
    found = [it for folder in ("", "docs", "examples", "ci") for it in sorted((ROOT / folder).glob("*.md"))]
    return [it for it in found if it.name != "CHANGELOG.md"]


# ---- The README's picture: what gains most and least. A bar is a ratio over stock, on a logarithmic axis.
LEFT, RIGHT, ROW = 380.0, 760.0, 26.0
LEAST, MOST = 0.01, 10.0
LINES = {0.01: "100 times less", 0.1: "10 times less", 1.0: "stock", 10.0: "10 times more"}


def place(ratio: float) -> float:
    return LEFT + (RIGHT - LEFT) * math.log(ratio / LEAST) / math.log(MOST / LEAST)


def picture(rows: list) -> str:
    bottom, stock = 70 + ROW * len(rows), place(1.0)
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {bottom + 34:g}" role="img" font-family="sans-serif" font-size="14">',
        "<title>pinbuddy over stock, from what gains most to what gains least</title>",
        "<style>text{fill:#1f2328}.better{fill:#009e73}.worse{fill:#d55e00}.line{stroke:#8c959f;stroke-width:1}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}}</style>",
        '<text x="12" y="24" font-size="17" font-weight="bold">pinbuddy over stock: lower is better</text>',
        '<text x="12" y="44" font-size="12">simulated, no GPU: two cores, pages locked for real</text>',
    ]
    for value, text in LINES.items():
        x = f"{place(value):.1f}"
        svg.append(f'<line class="line" x1="{x}" x2="{x}" y1="58" y2="{bottom:g}"/>')
        svg.append(f'<text x="{x}" y="{bottom + 18:g}" font-size="12" text-anchor="middle">{text}</text>')
    for number, (name, of, over) in enumerate(rows):
        above, below = (figure("", it) if it else 1.0 for it in (of, over))
        if above is None or below is None:
            raise Wrong(f"docs/tables.toml: no run has {of} and {over}")
        ratio = above / below
        x, y = place(ratio), 62 + ROW * number
        kind, at, anchor = ("better", x - 6, "end") if ratio <= 1 else ("worse", x + 6, "start")
        value = f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}"
        width = max(1.0, abs(x - stock))
        svg.append(f'<rect class="{kind}" x="{min(x, stock):.1f}" y="{y:g}" width="{width:.1f}" height="18"/>')
        svg.append(f'<text x="{LEFT - 62:g}" y="{y + 14:g}" text-anchor="end" font-size="13">{name}</text>')
        svg.append(f'<text x="{at:.1f}" y="{y + 14:g}" text-anchor="{anchor}" font-weight="bold" font-size="13">{value}</text>')
    return "\n".join([*svg, "</svg>", ""])


def should_be() -> tuple[dict[Path, str], list[str]]:
    """Each file as it should be, and what is wrong besides."""
    told = tomllib.loads((ROOT / "docs/tables.toml").read_text())
    files, complaints, used, reasons = {}, [], set(), set()
    for document in documents():
        name, text = str(document.relative_to(ROOT)), document.read_text()
        files[document] = written(text, told["table"], used)
        for head in unmeasured(text):
            reason = next((it for it in told["unmeasured"] if it["document"] == name and head.startswith(it["head"])), None)
            if reason:
                reasons.add(reason["head"])
            else:
                complaints.append(f"{name}: figures of no run: {head}")
    complaints += [f"docs/tables.toml: no document has {it}" for it in told["table"].keys() - used]
    complaints += [f"docs/tables.toml: nothing unmeasured under {it['head']}" for it in told["unmeasured"] if it["head"] not in reasons]
    files[ROOT / told["picture"]["file"]] = picture(told["picture"]["rows"])
    return files, complaints


def main(check: bool) -> int:
    try:
        files, complaints = should_be()
    except Wrong as why:
        files, complaints = {}, [str(why)]
    for file, text in files.items():
        if not file.is_file() or file.read_text() != text:
            if check:
                complaints.append(f"{file.relative_to(ROOT)} is not what the runs say; to do: ci/tables.py, and look at the change")
            else:
                file.write_text(text)
                print(file.relative_to(ROOT))
    print(*complaints, sep="\n", end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
