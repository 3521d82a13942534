"""Figures and tables as text, in Markdown."""


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table with padded columns, readable as plain text."""
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |"

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, rows)])


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def ranged(it: dict, middle: str = "median") -> str:
    low, high = it["quartiles"]
    return f"{number(it[middle])} ({number(low)} to {number(high)})"
