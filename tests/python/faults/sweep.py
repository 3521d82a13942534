"""Runs a program with each of its calls failing in turn, with pinbuddy and with stock, and finds what differs.

A program is run once to count its calls. Then each call that was counted fails, one run each: once, from then on, and with an
error that stays. Whatever stock does in the same place is no difference: a step that fails with the same exception while the same
call fails, or the one that stock has in its place. What is: another end of the process, a step that fails with pinbuddy alone, an
error that does not name the cause, memory that is lost, a hazard, what the engine's audit finds.
"""

from dataclasses import dataclass, field

from faults.cases import ALL, Case, cases, is_cuda
from faults.listed import Difference, kind_of
from faults.runs import Outcome, run

# What pinbuddy calls, and what stock does instead.
INSTEAD = {
    "cudaHostRegister": ("cudaHostAlloc",),
    "cudaHostGetDevicePointer": ("cudaHostAlloc",),
    "cudaHostUnregister": ("cudaFreeHost",),
    # Asks for a context.
    "cudaFree": ("cudaHostAlloc",),
    # Stands around a pin, and around an unpin.
    "cudaThreadExchangeStreamCaptureMode": ("cudaHostAlloc", "cudaFreeHost"),
}
# Has the simulator count system calls, too: this one is never made.
COUNT_ALL = "read:1000000=5"
# So many calls of a name are tried with stock in one step.
MOST_IN_A_STEP = 12

# Step, exception, and whether that names the cause.
Finding = tuple[str, str, bool]


class Stock:
    """What stock does where a call fails: which step says what. Asked only where pinbuddy does not go on as without the
    fault, and no further than to the first call where stock does the same."""

    def __init__(self, python: str, program: str, most: int):
        self.python, self.program, self.most = python, program, most
        self.counted = run(python, program)
        self.known: dict[Case, set[Finding]] = {}

    def findings(self, case: Case) -> set[Finding]:
        if case not in self.known:
            found = run(self.python, self.program, case.plan).findings()
            self.known[case] = {(name, kind_of(said), case.text in said) for name, said in found.items()}
        return self.known[case]

    def cases_like(self, case: Case, step: str | None) -> tuple[list[Case], list[Case]]:
        """Where a call of that name, or of what stock has in its place, fails in the same way with stock: in the same step,
        and in others."""
        here, elsewhere = [], []
        for entry in (case.entry, *INSTEAD.get(case.entry, ())):
            count = self.counted.calls.get(entry, 0)
            if not is_cuda(entry):
                continue
            alike = [Case(self.program, entry, call, case.kind) for call in range(1, count + 1)]
            inside = [it for it in alike if self.counted.step_of(entry, it.call) == step]
            # Of many, those at even distances.
            here += inside[:: -(-len(inside) // MOST_IN_A_STEP)] if inside else []
            elsewhere += [it for it in alike[: self.most] if it not in inside]
        return here, elsewhere

    def does(self, case: Case, step: str | None, name: str, said: str) -> str | None:
        """Whether stock says the same, and names the cause no better: "here" where a call of the same step fails,
        "elsewhere" where one of another step does. A driver that is gone is compared in the same step only: at some call
        of a program each later step fails."""
        named = case.text in said
        here, elsewhere = self.cases_like(case, step)
        for place, some in (("here", here), ("elsewhere", [] if case.entry == ALL else elsewhere)):
            # What is known costs no run.
            for it in sorted(some, key=lambda it: it not in self.known):
                for where, kind, names_it in self.findings(it):
                    if (where, kind) == (name, kind_of(said)) and (named or not names_it):
                        return place
        return None


@dataclass
class Swept:
    """What a sweep found."""

    differences: list[Difference] = field(default_factory=list)
    tried: set[Case] = field(default_factory=set)
    # As stock, where a call fails in another step.
    elsewhere: set[Case] = field(default_factory=set)


def compare(case: Case, outcome: Outcome, step: str | None, stock: Stock, swept: Swept) -> None:
    for name, said in outcome.findings().items():
        place = stock.does(case, step, name, said)
        if place is None:
            swept.differences.append(Difference(case, name, said))
        elif place == "elsewhere":
            swept.elsewhere.add(case)
    if outcome.status == 0 and outcome.injected == 0:
        swept.differences.append(Difference(case, "the fault", "it was never met"))


def sweep(fork: str, stock: str, program: str, most: int, kinds: tuple[str, ...], only: set[str] | None, part: tuple[int, int]) -> Swept:
    """Tries the cases of all calls, or of these only. ``part``: of every so many names the one with this number, so that
    several processes can share a program.

    Some calls depend on threads, or on what the machine has free: one that is not made again is not tried."""
    counted = run(fork, program, COUNT_ALL)
    # Stock may make the call in question later than pinbuddy.
    known = Stock(stock, program, 2 * most + 8)
    for which, it in (("pinbuddy", counted), ("stock", known.counted)):
        if it.findings():
            raise AssertionError(f"{program} with {which} and no fault: {it.findings()}\n{it.stderr}")
    swept = Swept()
    number, parts = part
    names = sorted(counted.calls)[number::parts]
    calls = {name: counted.calls[name] for name in names if only is None or name in only}
    for case in cases(program, calls, most, kinds):
        outcome = run(fork, program, case.plan)
        if outcome.status == 0 and outcome.calls.get(case.entry, 0) < case.call:
            continue
        swept.tried.add(case)
        # A process that ended says nothing of its steps.
        step = (outcome if outcome.reached else counted).step_of(case.entry, case.call)
        compare(case, outcome, step, known, swept)
    return swept
