"""What a client can observe, compared with stock; and the differences that are known, with their reasons."""

import tomllib
from dataclasses import dataclass

from runs import CLIENTS, HERE, Ran

# What is compared, in this order. How the program ended is first: where that differs, nothing else is compared.
KINDS = ("exit", "results", "warnings", "peak-pinned", "statistics")


@dataclass(frozen=True)
class Difference:
    what: str
    stock: object
    found: object
    # The name of the result or statistic, or the warning.
    of: str | None = None

    def __str__(self) -> str:
        return f"{self.what}{f' of {self.of!r}' if self.of else ''}: stock {self.stock!r}, here {self.found!r}"


def allowed(stock: int, in_use: int) -> int:
    """The limit of pinned bytes if stock pins `stock` and at most `in_use` are in use: the bound of docs/worst.md. (Without the
    two segments that it also allows, which are more than any client pins.) The moment at which threads free a block varies
    from run to run, and what is in use with it."""
    return 2 * max(stock, in_use + in_use // 4)


def differences(stock: Ran, other: Ran) -> list[Difference]:
    if stock.exit != other.exit:
        return [Difference("exit", stock.exit, other.exit)]
    found = []
    if stock.report and other.report:
        before, after = stock.report, other.report
        for what in ("results", "statistics"):
            # A name that only one of them has is a difference, too.
            for name in sorted(before[what].keys() | after[what].keys()):
                values = [it[what].get(name, "not there") for it in (before, after)]
                if values[0] != values[1]:
                    found.append(Difference(what, *values, name))
        most = allowed(before["peak_pinned"], after["peak_active"])
        if after["peak_pinned"] > most:
            found.append(Difference("peak-pinned", f"{before['peak_pinned']}, so that {most} are allowed", after["peak_pinned"]))
        names = [set(it["names"]) for it in (before, after)]
        if names[0] != names[1]:
            found.append(Difference("statistics", sorted(names[0] - names[1]), sorted(names[1] - names[0]), "names of statistics"))
    for line in sorted(stock.warnings ^ other.warnings):
        said = ["said" if line in it.warnings else "not said" for it in (stock, other)]
        found.append(Difference("warnings", *said, line))
    return found


def known(text: str | None = None) -> list[dict]:
    """The entries of differences.toml, each with a client that there is, what differs, and why."""
    entries = tomllib.loads(text or (HERE / "differences.toml").read_text()).get("difference", [])
    for entry in entries:
        good = entry["client"] in [it.name for it in CLIENTS] and entry["what"] in KINDS and entry["why"].strip()
        if not good or not entry.keys() <= {"client", "what", "of", "with", "why"}:
            raise ValueError(f"differences.toml: {entry} is not the name of a client, what differs ({', '.join(KINDS)}), and why")
    return entries


def is_of(entry: dict, client: str, way: str) -> bool:
    return entry["client"] == client and entry.get("with", way) == way


def is_listed(entry: dict, difference: Difference) -> bool:
    """Whether the entry speaks of it: of the result or statistic that it names, or of the warning that it is a part of."""
    of = entry.get("of")
    is_it = of is None or (of in (difference.of or "") if entry["what"] == "warnings" else of == difference.of)
    return entry["what"] == difference.what and is_it


def complaints(client: str, way: str, found: list[Difference], entries: list[dict]) -> list[str]:
    """What differs and is not listed, and what is listed and no longer differs."""
    own = [it for it in entries if is_of(it, client, way)]
    unlisted = [str(it) for it in found if not any(is_listed(entry, it) for entry in own)]
    gone = [it for it in own if not any(is_listed(it, difference) for difference in found)]
    return unlisted + [f"{it['what']} no longer differs: take it out of tests/clients/differences.toml" for it in gone]
