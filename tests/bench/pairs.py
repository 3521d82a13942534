"""Pairs of allocate and free: hits by size, on several threads, among many blocks, and of device memory."""

from statistics import median

from harness import SYNC, TIMED, Case, Machine, crowd, measure, medians, planned, ratios, requests
from results import Results, at_least, at_most, by_name, table

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# A name, the requests in the harness's words (requests.h), pairs of about a millisecond, and the most of stock's time.
SIZES = {"4KiB": 4 * KIB, "64KiB": 64 * KIB, "1MiB": MIB, "4MiB": 4 * MIB, "8MiB": 8 * MIB, "16MiB": 16 * MIB,
         "64MiB": 64 * MIB, "129.5MiB": 259 * MIB // 2, "512MiB": 512 * MIB}
HITS = [(name, str(size), 8_000, 0.8) for name, size in SIZES.items()] + [
    ("mixed", "mixed", 8_000, 0.8), ("event", "event", 1_500, 0.9), ("event-64KiB", "small-event", 1_500, 0.9)]
P99, MISS = 1.0, 3.0


def hit(machine: Machine, results: Results) -> None:
    """Cached blocks; and a request that splits a block, whose free merges it, beside a hit of stock's, which splits nothing."""
    cases = []
    for name, pattern, pairs, _ in HITS:
        cases.append(Case(name, f"pairs {pairs}", requests(pattern, 4 * pairs)))
        cases.append(Case(f"{name} p99", f"single {pairs}", field="p99"))

    # Each size once before, so that pins of stock-tuned are not measured.
    cases.append(Case("miss", "pairs 5000", lambda it: requests(str(8 * MIB) if it.name == "stock" else "miss", 16_000)(it)))
    seen = measure(machine, lambda: machine.start_all(TIMED, SYNC), cases)
    ratio = {subject: {case: ratios(it, subject) for case, it in seen.items()} for subject in TIMED}
    for name, _, _, target in HITS:
        results.rounds(("hit_pair_ratio", name), ratio["pinbuddy"][name], at_most(target))
        results.rounds(("p99_ratio", name), ratio["pinbuddy"][f"{name} p99"], at_most(P99))
    results.rounds(("miss_ratio",), ratio["pinbuddy"]["miss"], at_most(MISS))
    timed = [it for it in seen if not it.endswith("p99")]
    times = {subject: {case: medians(seen[case], subject) for case in timed} for subject in TIMED}
    results.details["hit"] = {
        "pair_ns": by_name(times),
        "ratio": by_name({subject: {case: it[case] for case in timed} for subject, it in ratio.items()}),
        "p99_ratio": by_name({subject: {name: it[f"{name} p99"] for name, *_ in HITS} for subject, it in ratio.items()}),
    }
    rows = [(case, [median(times[it][case]) for it in TIMED]) for case in timed]
    rows += [(f"{case} / stock", [median(ratio[it][case]) for it in TIMED]) for case in seen]
    print(table("allocate + free, ns", TIMED, rows))
    results.charts.append({
        "file": "latency-by-size", "title": "Allocate + free of a cached block", "x": "size of the request",
        "y": "nanoseconds a pair", "x_scale": "bytes",
        "series": {it: [[size, median(times[it][name])] for name, size in SIZES.items()] for it in TIMED}})


COUNTS = (1, 2, 4, 8)
ALL_PAIRS = 40_000  # of all threads together: some milliseconds


def threads(machine: Machine, results: Results) -> None:
    cases = [Case(str(count), f"threads {count} {ALL_PAIRS // count}", requests(str(8 * MIB))) for count in COUNTS]
    seen = measure(machine, lambda: machine.start_all(TIMED, SYNC), cases, turns=-(-machine.turns // 2), pinned=False)
    # Throughput is the inverse of time.
    faster = {it: {str(count): ratios(seen[str(count)], "stock", it) for count in COUNTS} for it in TIMED}
    times = {it: {str(count): [time / ALL_PAIRS for time in medians(seen[str(count)], it)] for count in COUNTS} for it in TIMED}
    for count in COUNTS[1:]:
        results.rounds(("threads_ratio", count), faster["pinbuddy"][str(count)], at_least(1.5))
    results.details["threads"] = {"pair_ns": by_name(times), "throughput": by_name(faster)}
    rows = [(f"{count}, ns a pair", [median(times[it][str(count)]) for it in TIMED]) for count in COUNTS]
    rows += [(f"{count}, throughput / stock", [median(faster[it][str(count)]) for it in TIMED]) for count in COUNTS]
    print(table("threads", TIMED, rows))


CROWDS = (100, 1_000, 10_000, 100_000, 1_000_000)
PATIENCE = 20  # seconds that an allocator may take to make the blocks; if it takes longer, it is left out from there on


def scaling(machine: Machine, results: Results) -> None:
    """Split and merge among a growing number of live and free blocks."""
    counts = CROWDS if machine.effort == "full" else CROWDS[:4]
    # Room for a million live and a million free blocks of 4 KiB, and more.
    room = {**SYNC, "BUDDY_THRESHOLD_MB": "0", "BUDDY_BLOCK_COUNT": "10"}
    cases = [crowd(str(count), count, PATIENCE) for count in counts]
    # Making the blocks takes longer than all turns.
    rounds, turns = min(machine.rounds, 5), -(-machine.turns // 2)
    seen = measure(machine, lambda: machine.start_all(TIMED, room), cases, rounds, turns)
    times = {it: {count: medians(seen[str(count)], it) for count in counts if it in seen[str(count)]} for it in TIMED}
    for it, own in times.items():
        for count, rounds in own.items():
            results.rounds(("scaling", it, count), rounds)
    cell = {it: {count: median(rounds) for count, rounds in own.items()} for it, own in times.items()}
    ours = cell["pinbuddy"].values()
    results.value(("context", "scaling_slowest_over_fastest"), max(ours) / min(ours), at_most(2.0))
    results.details["scaling"] = {"patience_s": PATIENCE, "block_bytes": 4096}
    print(table("among blocks, ns a pair", TIMED, [(count, [cell[it].get(count) for it in TIMED]) for count in counts]))
    results.charts.append({
        "file": "latency-by-blocks", "title": "Allocate + free, no two sizes alike, among other blocks",
        "x": "live blocks, and as many free ones between them", "y": "nanoseconds a pair", "x_scale": "log", "y_scale": "log",
        "series": {it: [[count, value] for count, value in own.items()] for it, own in cell.items()}})


# A name, and what is measured beside a plan of `DEVICE_PLANNED`: that itself, shorter requests, and longer ones than it has regions
# for. (A block of one size again and again has no plan: none reserves less than PyTorch's allocator.)
DEVICE_PLANNED = "large-mixed"
DEVICE = [(DEVICE_PLANNED, DEVICE_PLANNED), ("64KiB-passes", str(64 * KIB)), ("2GiB-passes", str(2 * GIB))]
DEVICE_PAIRS, DEVICE_RECORDED = 4_000, 6_000
DEVICE_RATIO, DEVICE_MORE = 0.8, 20.0


def device(machine: Machine, results: Results) -> None:
    """Device memory: what is planned is judged by the ratio, what passes through beside a plan by the nanoseconds on top."""
    rows, details = [], {"stock_ns": {}, "planned_ns": {}}
    for name, measured in DEVICE:
        machine.say(f"{name}, the first run")
        case = Case(name, f"pairs {DEVICE_PAIRS}", requests(measured, 4 * DEVICE_PAIRS, "device"))
        with planned(machine, requests(DEVICE_PLANNED, DEVICE_RECORDED, "device"), "BUDDY_DEVICE_PLAN") as start:
            seen = measure(machine, lambda: [machine.start("stock"), start()], [case])[name]
        ratio = ratios(seen, "pinbuddy-plan")
        if measured == DEVICE_PLANNED:
            results.rounds(("device_pair_ratio", name), ratio, at_most(DEVICE_RATIO))
        else:
            more = [median(a - b for a, b in zip(*turns)) for turns in zip(seen["pinbuddy-plan"], seen["stock"])]
            results.rounds(("device_more_ns", name), more, at_most(DEVICE_MORE))
        cells = [median(it) for it in (medians(seen, "stock"), medians(seen, "pinbuddy-plan"), ratio)]
        details["stock_ns"][name], details["planned_ns"][name] = round(cells[0], 1), round(cells[1], 1)
        rows.append((name, cells))
    results.details["device"] = details
    print(table("device memory, allocate + free", ["stock ns", "with a plan ns", "ratio"], rows))
