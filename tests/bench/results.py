"""What a run came to: figures with spread and target, details, and what was left out; as JSON and as tables.

The JSON's top level has only figures, by their paths, and `context`.
"""

import math
from functools import partial
from statistics import median
from typing import NamedTuple, Optional


class Failed(Exception):
    """A measurement that cannot be made, in words for whoever started the run."""


class Target(NamedTuple):
    """`<=` or `>=` a bound."""

    sign: str
    bound: float

    def met(self, value: float) -> bool:
        return value <= self.bound if self.sign == "<=" else value >= self.bound

    def __str__(self) -> str:
        return f"{self.sign} {rounded(self.bound)}"


at_most, at_least = partial(Target, "<="), partial(Target, ">=")


class Figure(NamedTuple):
    path: tuple
    value: float
    spread: Optional[tuple]
    target: Optional[Target]


def rounded(value: float) -> Optional[float]:
    """Four significant digits; nothing for what is no number."""
    if not math.isfinite(value):
        return None
    return value if value == 0 else round(float(value), 3 - math.floor(math.log10(abs(value))))


def ratio_of_turns(of: list, over: list) -> float:
    """The median of the turns' ratios: a disturbance mostly affects both sides of a turn."""
    return median(a / b for a, b in zip(of, over, strict=True))


class Results:
    def __init__(self):
        self.figures: list[Figure] = []
        self.details: dict = {}
        self.skipped: dict = {}
        self.charts: list[dict] = []

    def value(self, path: tuple, value: float, target: Optional[Target] = None) -> None:
        """A figure of a single measurement."""
        self.figures.append(Figure(tuple(map(str, path)), value, None, target))

    def rounds(self, path: tuple, rounds: list, target: Optional[Target] = None) -> None:
        """A figure that is the median of rounds."""
        spread = (min(rounds), max(rounds))
        self.figures.append(Figure(tuple(map(str, path)), median(rounds), spread, target))

    def json(self, context: dict) -> dict:
        values, spreads = {}, {}
        for figure in self.figures:
            _insert(values, figure.path, rounded(figure.value))
            if figure.spread:
                _insert(spreads, figure.path, [rounded(it) for it in figure.spread])
        own = {"spread": spreads, "skipped": self.skipped, "details": self.details}
        return {**values, "context": {**context, **values.pop("context", {}), **own}}

    def judged(self) -> list[Figure]:
        return [it for it in self.figures if it.target]

    def missed(self) -> list[Figure]:
        return [it for it in self.judged() if not it.target.met(it.value)]

    def __str__(self) -> str:
        """Figures with a target, and what was left out."""
        lines = []
        if judged := self.judged():
            rows = []
            for it in judged:
                met = "yes" if it.target.met(it.value) else "no"
                spread = f"{it.spread[0]:.3f} to {it.spread[1]:.3f}" if it.spread else ""
                rows.append((" ".join(it.path), [f"{it.value:.3f}", str(it.target), met, spread]))
            lines.append(table("", ["found", "target", "met", "spread"], rows))
            lines.append(f"{len(judged) - len(self.missed())} of {len(judged)} targets met")
        lines += [f"left out: {what}: {why}" for what, why in self.skipped.items()]
        return "\n".join(lines)


def table(title: str, columns: list, rows: list) -> str:
    """Rows of a name and its cells; a cell that is a number has three digits, and an empty one a dash."""

    def shown(cell) -> str:
        return "-" if cell is None else f"{cell:.3f}" if isinstance(cell, float) else str(cell)

    all_rows = [(title, [str(it) for it in columns])] + [(str(name), [shown(it) for it in cells]) for name, cells in rows]
    first = max(len(name) for name, _ in all_rows)
    widths = [max(8, *(len(cells[at]) for _, cells in all_rows)) for at in range(len(all_rows[0][1]))]
    lines = (name.ljust(first) + "".join(f"   {it:>{width}}" for it, width in zip(cells, widths))
             for name, cells in all_rows)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def by_name(seen: dict) -> dict:
    """The medians of rounds in a dictionary of any depth."""
    return {name: by_name(it) for name, it in seen.items()} if isinstance(seen, dict) else round(median(seen), 4)


def _insert(into: dict, path: tuple, value) -> None:
    for name in path[:-1]:
        into = into.setdefault(name, {})
    into[path[-1]] = value
