"""What differs from stock, each with its reason: `differences.txt`, and whether it is true."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from faults.cases import Case

DIFFERENCES = Path(__file__).with_name("differences.txt")


def kind_of(said: str) -> str:
    """An exception's type, of what a step said."""
    return said.split(":")[0]


@dataclass
class Difference:
    """What pinbuddy does and stock does not."""

    case: Case
    name: str
    said: str

    def __str__(self) -> str:
        case = self.case
        return f"{case.program}; {case.entry}:{case.call}; {case.kind}; {self.name}; {self.said}"


@dataclass(frozen=True)
class Listed:
    """A line of `differences.txt`: ``PROGRAM; CALL:FIRST; KIND; STEP; EXCEPTION = REASON``.

    FIRST is the first call of that name that shows it, or ``*`` where threads decide that. PROGRAM may be a pattern:
    then each program that it matches has to show it.
    """

    program: str
    entry: str
    call: str
    kind: str
    name: str
    said: str

    def speaks_of(self, difference: Difference) -> bool:
        case = difference.case
        return (
            fnmatchcase(case.program, self.program)
            and (self.entry, self.kind) == (case.entry, case.kind)
            and (self.name, self.said) == (difference.name, kind_of(difference.said))
            and (self.call == "*" or case.call >= int(self.call))
        )

    def is_stale(self, found: list[Difference], tried: set[Case]) -> bool:
        if self.call == "*":
            return False
        shown = {it.case for it in found if self.speaks_of(it)}
        first = (self.entry, int(self.call), self.kind)
        alike = [it for it in tried if fnmatchcase(it.program, self.program) and first == (it.entry, it.call, it.kind)]
        return not shown.issuperset(alike)


def against_the_list(found: list[Difference], tried: set[Case]) -> tuple[list[Difference], list[str]]:
    """The differences that no line of the list speaks of, and the lines of it that are not true."""
    listed = {}
    for line in DIFFERENCES.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        difference, _, reason = line.partition(" =")
        if not reason.strip():
            raise ValueError(f"{DIFFERENCES.name} has a line without a reason: {line}")
        program, call, *rest = difference.split("; ")
        listed[line] = Listed(program, *call.rsplit(":", 1), *rest)
    unlisted = [it for it in found if not any(line.speaks_of(it) for line in listed.values())]
    return unlisted, [line for line, it in listed.items() if it.is_stale(found, tried)]
