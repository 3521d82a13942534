"""Programs with cold starts, growth, clears, shortage and exits, where an allocator that pins ahead can be worse than stock.

If a program fails, the figures of the others are kept. docs/bench.md explains each.
"""

from pathlib import Path
from statistics import median
from typing import NamedTuple

from harness import SYNC, Case, Machine, crowd, in_turns, measure, medians, printed, ratios, requests
from replays import available_memory
from results import Failed, Results, at_most, table

SCRIPTS = Path(__file__).parent.parent / "programs"
NEEDED = 8 << 30  # for one program: 6,000 MiB pinned for real, and what it uses besides
MOST_ROUNDS = 5  # starting torch takes longer than most programs


class Judged(NamedTuple):
    """A printed figure: its name there and in the results, how both values make one, and the most that may come of it."""

    key: str
    name: str
    how: str
    target: float


# Of stock's value and the fork's. A single request may take 1.5 times stock's and 20 ms, for a hiccup where stock takes no
# time. A count may be nought, so it has a difference.
HOW = {
    "ratio": lambda stock, fork: fork / stock,
    "allowed": lambda stock, fork: fork / (1.5 * stock + 0.02),
    "more": lambda stock, fork: fork - stock,
    "ours": lambda stock, fork: fork,
}
# Never worse than stock, with a tolerance of a tenth for noise in the time of a whole program.
TIME = Judged("seconds", "seconds_ratio", "ratio", 1.1)
SLOWEST = Judged("slowest", "slowest_over_allowed", "allowed", 1.0)
PEAK = Judged("peak_mib", "peak_ratio", "ratio", 1.0)
PINS = Judged("pins", "pins_ratio", "ratio", 1.0)
PINNED = Judged("pinned_mib", "pinned_ratio", "ratio", 1.0)
PAIR = Judged("pair_ns", "pair_ratio", "ratio", 1.1)
EVER = Judged("pinned_ever_mib", "pinned_ever_ratio", "ratio", 1.0)


def ours(key: str, target: float) -> Judged:
    return Judged(key, key, "ours", target)


# The file in SCRIPTS with its arguments, and what is judged. All but ALONE run with stock, too.
PROGRAMS = {
    "stall-quiet": ("stall 0", [TIME, SLOWEST]),
    "stall-busy": ("stall 2", [TIME, SLOWEST]),
    "loader": ("loader", [TIME, SLOWEST]),
    "captures": ("captures", [TIME, SLOWEST]),
    "clears": ("clears", [TIME, SLOWEST]),
    "cold-large": ("cold_large", [TIME, SLOWEST]),
    "cold-large-exact": ("cold_large exact", [TIME, SLOWEST]),
    "cold-first": ("cold_large first", [SLOWEST]),
    "growing-large-new": ("growing_large new", [TIME, PINS, PEAK]),
    "growing-large-old": ("growing_large old", [TIME, PINS, PEAK]),
    "random-large": ("random_large", [PEAK]),
    "growing-small": ("growing_small", [TIME, PINS, PEAK, EVER]),
    "rounds-threads": ("rounds_threads", [ours("pinned_over_largest", 1.1), PINNED]),
    "exit-quiet": ("exit 0", [TIME]),
    "exit-busy": ("exit 2", [TIME]),
    "impossible-request": ("impossible_request", [Judged("pins_after", "more_pins_after", "more", 0.0), SLOWEST]),
    "pool-over-budget": ("pool_over_budget", [PINNED]),
    "rewarm": ("rewarm", [PINNED]),
    # The kernel allows some 65,000 areas in total.
    "many-regions": ("many_regions", [TIME, ours("end_over_beginning", 1.5), Judged("areas", "more_areas", "more", 1000.0)]),
    "busy-streams": ("streams busy 31", [PAIR]),
    "external-streams": ("streams external 3000", [PAIR]),
    "spawn-ranks": ("spawn_ranks", [ours("budgets_over_half", 1.0)]),
}
ALONE = {"spawn-ranks"}


def script(machine: Machine, name: str, fork: bool) -> dict:
    """Runs the program in a process of its own, and reads its figures, the last line."""
    file, *arguments = PROGRAMS[name][0].split()
    command = [machine.python(fork), f"{file}.py", *arguments, *([] if machine.effort == "full" else ["--quick"])]
    return printed(command, machine.environ, cwd=SCRIPTS)


def in_rounds(machine: Machine, name: str, results: Results, rows: list, details: dict) -> None:
    machine.say(name)
    who = [True] if name in ALONE else [False, True]
    seen = {False: [], **dict(zip(who, in_turns(who, min(machine.rounds, MOST_ROUNDS), lambda fork: script(machine, name, fork))))}

    def values(fork: bool, key: str) -> list:
        return [it[key] for it in seen[fork] if key in it]

    for key, figure, how, target in PROGRAMS[name][1]:
        stock, fork = values(False, key), values(True, key)
        rounds = [HOW[how](*both) for both in zip(stock, fork)] if stock else fork
        results.rounds(("worst", name, figure), rounds, at_most(target))
        rows.append((f"{name} {figure}", [median(stock) if stock else None, float(median(fork)), float(median(rounds))]))
    details[f"worst/{name}"] = {
        which: {key: round(median(values(fork, key)), 4) for key in sorted({key for it in seen[fork] for key in it})}
        for which, fork in (("stock", False), ("fork", True))}


# ---- In the harness: programs that need nanoseconds or threads. Pins are counted. A pattern of requests (requests.h), pairs
# of about a millisecond (a multiple of the batch), settings, and the most of stock's time.
SPENT = {**SYNC, "BUDDY_MAX_MB": "64", "BUDDY_BLOCK_SIZE_MB": "64"}
PATTERNS = {
    "64KiB-x1000": ("1000x65536", 8_000, SYNC, 1.3),
    "8MiB-x400": ("400x8388608", 8_000, SYNC, 1.3),
    "50-sizes": ("50-sizes", 8_000, SYNC, 1.3),
    "50-random": ("50-random", 8_000, SYNC, 1.3),
    # With less pinned than stock has: too little for the caches.
    "50-random-on-demand": ("50-random", 8_000, {}, 1.3),
    # Stock reuses a block of the next power of two; the fork splits and merges.
    "never-again": ("never-again", 4_000, SYNC, 2.0),
    "budget-spent": ("400-sizes", 8_000, SPENT, 1.3),
    "budget-spent-random": ("50-random", 8_000, SPENT, 1.3),
}


def pairs(machine: Machine, results: Results) -> None:
    """Many live blocks, many sizes, sizes that do not come back, and a budget that is used up."""
    rows = []
    for name, (pattern, count, more, target) in PATTERNS.items():
        case = Case(name, f"pairs {count}", requests(pattern, 4 * count))
        rounds = min(machine.rounds, MOST_ROUNDS)
        seen = measure(machine, lambda: machine.start_all(["stock", "pinbuddy"], more), [case], rounds)[name]
        ratio = ratios(seen, "pinbuddy")
        results.rounds(("worst", "pairs", name), ratio, at_most(target))
        rows.append((name, [median(medians(seen, "stock")), median(medians(seen, "pinbuddy")), median(ratio)]))
    print(table("pairs, ns", ["stock", "pinbuddy", "ratio"], rows))


def statistics(machine: Machine, results: Results) -> None:
    """Four threads fill the pinned memory, and one reads statistics all the time, which flushes the thread caches. The figure
    is the worst ratio of pinned memory after to before, since an unnecessary pin stays."""
    worst = 0.0
    for number in range(min(machine.rounds, MOST_ROUNDS)):
        machine.say(f"round {number + 1}, statistics")
        with machine.start("pinbuddy", {**SYNC, "BUDDY_BLOCK_COUNT": "1"}) as process:
            # The threads end with the next line, and free their blocks.
            for line in ("requests 268435456", "threads 4 1000", "requests 268435456"):
                process.ask(line)
            before = process.number("pins", "bytes")
            process.ask(f"beside-statistics 4 {3 if machine.effort == 'full' else 1}")
            worst = max(worst, process.number("pins", "bytes") / before)
    results.value(("worst", "statistics", "pinned_after_over_before"), worst, at_most(1.0))


# Holes in the pool, and RMM's published microseconds per pair with as many; seconds that making them may take.
HOLES, PATIENCE = {4_096: 10.0, 65_536: 156.0}, 60


def holes(machine: Machine, results: Results) -> None:
    """Requests of many sizes among holes that fit only the smallest of them."""
    rounds = min(machine.rounds, MOST_ROUNDS)
    for count, published in HOLES.items():
        case = crowd(f"{count} holes", count, PATIENCE)
        seen = measure(machine, lambda: machine.start_all(["pinbuddy"], {**SYNC, "BUDDY_THRESHOLD_MB": "0"}), [case], rounds)[case.name]
        if len(seen.get("pinbuddy", [])) < rounds:
            raise Failed(f"{count} holes took too long")
        results.rounds(("worst", "holes", f"{count}_us"), [it / 1e3 for it in medians(seen, "pinbuddy")], at_most(published))


HARNESSED = {"pairs": pairs, "statistics": statistics, "holes": holes}
NAMES = [*PROGRAMS, *HARNESSED]


def worst(machine: Machine, results: Results, names: list) -> None:
    """The named programs, or all."""
    if (available := available_memory()) < NEEDED:
        results.skipped["worst"] = f"{available >> 20} MiB are available, not {NEEDED >> 20}"
        return
    rows, details, failed = [], {}, []
    for name in names or NAMES:
        try:
            if name in HARNESSED:
                HARNESSED[name](machine, results)
            else:
                in_rounds(machine, name, results, rows, details)
        except Failed as why:
            machine.say(f"worst/{name}: {why}")
            results.skipped[f"worst/{name}"] = "it failed"
            failed.append(name)
    if details:
        print(table("worst", ["stock", "pinbuddy", "judged"], rows))
        results.details["worst"] = details
    if failed:
        raise Failed(f"failed: {', '.join(failed)}")
