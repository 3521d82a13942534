"""Whole workloads, replayed: what is pinned, the first iteration, and second runs with the plan of a first one."""

from pathlib import Path
from statistics import median
from typing import Callable

from harness import SUBJECTS, SYNC, Case, Machine, Process, in_turns, is_fork, measure, of_system, planned, ratios, requests, use_memory
from results import Failed, Results, at_least, at_most, ratio_of_turns, table
from traces import SEED, Workload, workloads

GIB = 1 << 30


def available_memory() -> int:
    return int(of_system("/proc/meminfo", "MemAvailable").split()[0]) << 10


# ---- memory: how much each allocator pins. The events of a fast replay come sooner than a background thread asks (every
# 100 microseconds), so here stock-tuned asks as stock does.
NO_THREADS = {"stock-tuned": {"PYTORCH_ALLOC_CONF": "pinned_max_round_threshold_mb:1"}}
PLOTTED = {"training-1f1b": ("memory-training", "Pinned memory, activation offload in a 1F1B pipeline"),
           "variable-lengths": ("memory-variable-lengths", "Pinned memory, sizes that vary from step to step")}


def outcome(answer: dict) -> dict:
    def ratio(over: str, under: str):
        return answer[over][0] / answer[under][0] if answer[under][0] > 0 else None

    return {
        "pinned_over_requested": ratio("peak_pinned", "peak_live") or 1.0,
        "after_clear_over_live": ratio("pinned_after_clear", "live_at_clear"),
        "pins_after_warmup": sum(answer["iteration_pins"][1:]),
        "planned_hits_percent": None,
        "answer": answer,
    }


def second_runs(machine: Machine, workload: Workload, first: str, trace: Path) -> dict:
    """Nobody marks iterations, as in most programs. The median of what is pinned, and the most pins."""
    runs = []
    with planned(machine, lambda it: it.ask(first)) as start:
        for seed in workload.second_seeds():
            workload.write(machine, trace, seed)
            with start() as process:
                process.ask("warm-up")
                own = outcome(process.ask(f"replay {trace} free"))
                counts = [process.ask("plan")[name][0] for name in ("hits", "misses", "unplanned")]
            pins = sum(own["answer"]["iteration_pins"])
            runs.append({"seed": seed, "pinned_over_requested": own["pinned_over_requested"], "pins": pins})
    return own | {
        "pinned_over_requested": median(it["pinned_over_requested"] for it in runs),
        "pins_after_warmup": max(it["pins"] for it in runs),
        # A plan of an amount alone has none.
        "planned_hits_percent": 100 * counts[0] / sum(counts) if any(counts) else None,
        "runs": runs,
    }


def memory(machine: Machine, results: Results) -> None:
    programs = workloads(machine)
    seen: dict = {}
    for workload in programs:
        with machine.folder() as folder:
            workload.write(machine, folder / "trace")
            replay = f"replay {folder / 'trace'} free"
            for subject in SUBJECTS:
                machine.say(f"{workload.name}, {subject}")
                if subject == "pinbuddy-plan":
                    seen[workload.name, subject] = second_runs(machine, workload, replay, folder / "second")
                    continue
                with machine.start(subject, NO_THREADS.get(subject, {})) as process:
                    seen[workload.name, subject] = outcome(process.ask(replay))
    for workload in programs:
        own = {subject: seen[workload.name, subject] for subject in SUBJECTS}
        others = min(it["pinned_over_requested"] for subject, it in own.items() if not is_fork(subject))
        # The defaults pin ahead on purpose. Regions are whole huge pages, so others may be better by 0.01.
        fit = {"pinbuddy-exact": at_most(min(1.10 if workload.vary else 1.05, others + 0.01)),
               "pinbuddy-plan": at_most(1.08 if workload.vary else 1.02)}
        for subject, it in own.items():
            for key, target in [
                ("pinned_over_requested", fit.get(subject)),
                ("after_clear_over_live", at_most(1.02) if is_fork(subject) else None),
                ("pins_after_warmup", at_most(0.0) if subject == "pinbuddy-plan" else None),
            ]:
                if it[key] is not None:
                    results.value((key, subject, workload.name), it[key], target)
            if it["planned_hits_percent"] is not None:
                results.value(("planned_hits_percent", workload.name), it["planned_hits_percent"])
    for key in ("pinned_over_requested", "after_clear_over_live", "pins_after_warmup"):
        print(table(key, SUBJECTS, [(it.name, [seen[it.name, subject][key] for subject in SUBJECTS]) for it in programs]))
    runs = {it.name: seen[it.name, "pinbuddy-plan"]["runs"] for it in programs}
    results.details["memory"] = {"seed": SEED, "second_runs": runs}
    for name, (file, title) in PLOTTED.items():
        answers = {subject: seen[name, subject]["answer"] for subject in SUBJECTS}
        lines = {"live": (answers["stock"], "sample_live"), **{it: (answer, "sample_pinned") for it, answer in answers.items()}}
        results.charts.append({
            "file": file, "title": title, "x": "seconds of the program", "y": "GiB", "steps": True,
            "series": {it: [[time / 1e6, value / GIB] for time, value in zip(answer["sample_us"], answer[key])]
                       for it, (answer, key) in lines.items()}})


# ---- first: time in requests during the first iteration, pages locked for real. The trace is replayed at its own pace, so
# that a background warm-up has the same time as beside a real program. A way to start: the allocator, its settings,
# whether it is warm before, and the target. A quick run has the first four.
STARTS = {
    "stock": ("stock", {}, False, None),
    "ready": ("pinbuddy", {"BUDDY_WARMUP": "background"}, True, 10.0),
    "background": ("pinbuddy", {"BUDDY_WARMUP": "background"}, False, 3.0),
    "sync": ("pinbuddy", SYNC, False, 1.0),
    "stock-tuned": ("stock-tuned", {}, False, None),
}


def first(machine: Machine, results: Results) -> None:
    workload = next(it for it in workloads(machine) if it.name == "training-1f1b")
    starts = list(STARTS)[: None if machine.effort == "full" else 4]
    with machine.folder() as folder:
        trace = folder / "trace"
        live = workload.write(machine, trace, steps=1, first=True)
        # Stock rounds to powers of two and needs 1.4 times as much here; others pin 8 GiB ahead.
        needed = max(live // 2 * 3, 9 << 30)
        if (available := available_memory()) < needed:
            results.skipped["first"] = f"{available >> 20} MiB are available, {needed >> 20} MiB would be locked and used"
            return

        def first_seconds(name: str) -> float:
            machine.say(name)
            subject, more, ready, _ = STARTS[name]
            with machine.start(subject, more, counted=False) as process:
                use_memory(needed)
                if ready:
                    process.ask("warm-up")
                return process.ask(f"replay {trace} paced")["iteration_ns"][0] / 1e9

        # Each start fills gigabytes of fresh memory, which takes a quarter of a minute.
        seconds = dict(zip(starts, in_turns(starts, min(machine.rounds, 5), first_seconds)))
    rows = []
    for name in starts:
        speedups = [stock / own for stock, own in zip(seconds["stock"], seconds[name])]
        rows.append((name, [median(seconds[name]), median(speedups)]))
        if target := STARTS[name][3]:
            results.rounds(("first_iteration_speedup", name), speedups, at_least(target))
    print(table("first iteration", ["seconds", "speedup"], rows))
    own = {name: median(it) for name, it in seconds.items()}
    results.details["first"] = {"workload": workload.name, "seconds": own, "peak_live_bytes": live}


# ---- plan: second runs. Memory is counted, so that any size fits any machine, and pins take a driver's time.
PACE = {"PINBUDDY_SIM_PIN_MS_PER_GB": "300"}
PATTERNS = {"8MiB": str(8 << 20), "mixed": "mixed", "50-sizes": "50-sizes", "event": "event"}
# So many pairs are recorded: nothing else happens between them, and many more would overrun the recorder.
PAIRS, RECORDED = 4_000, 2_000
PLAN_TARGETS = {
    "first_iteration_speedup": at_least(50.0),
    "cold_first_iteration_speedup": None,
    "pair_ratio": at_most(0.6),
    "default_pair_ratio": None,
}


def plan(machine: Machine, results: Results, names: list) -> None:
    """The named workloads alone, or all of them and the patterns."""
    seen: dict = {key: {} for key in [*PLAN_TARGETS, "warm_up_s", "stock", "plan"]}
    smoke = machine.effort == "smoke"
    for workload in workloads(machine):
        if workload.name in names or not names and (not smoke or workload.name == "tensors-155"):
            _second_run(machine, workload, seen)
    for name, pattern in list(PATTERNS.items())[: 0 if names else 1 if smoke else None]:
        machine.say(f"pairs, {name}")
        _pairs(machine, name, pattern, seen)
    for key, target in PLAN_TARGETS.items():
        for name, rounds in seen[key].items():
            results.rounds(("plan", key, name), rounds, target)
    medians = {key: {name: median(rounds) for name, rounds in own.items()} for key, own in seen.items()}
    results.details["plan"] = {
        "pace_ms_per_gib": int(PACE["PINBUDDY_SIM_PIN_MS_PER_GB"]), "warm_up_s": medians["warm_up_s"],
        "first_iteration_s": {"stock": medians["stock"], "plan": medians["plan"]}}
    columns = ["first, faster", "cold, faster", "pair", "default", "warm-up, s", "stock's first, s"]
    rows = sorted({name for own in medians.values() for name in own})
    print(table("with a plan, over stock", columns, [(it, [own.get(it) for own in list(medians.values())[:6]]) for it in rows]))


def _second_run(machine: Machine, workload: Workload, seen: dict) -> None:
    """A workload from its first request to its last. Where sizes vary, those that were recorded never come again."""
    steps = min(workload.steps, 4) if machine.effort == "smoke" else 0
    seed = workload.second_seeds()[0]
    with machine.folder() as folder:
        recorded, whole, begin = (folder / it for it in ("recorded", "whole", "begin"))
        workload.write(machine, recorded, SEED, steps)
        workload.write(machine, whole, seed, steps)
        workload.write(machine, begin, seed, steps, first=True)
        machine.say(f"{workload.name}, the first run")
        # Waits for the warm-up before each request, as fast as a program: else the recorder would be overrun.
        with planned(machine, lambda it: it.ask(f"replay {recorded} free")) as start:
            for number in range(1, min(machine.rounds, 3) + 1):  # each takes minutes, most of them pins of stock's
                machine.say(f"{workload.name}, round {number}")
                for key, value in _round(machine, start, whole, begin).items():
                    seen[key].setdefault(workload.name, []).append(value)


def _round(machine: Machine, start: Callable[..., Process], whole: Path, begin: Path) -> dict:
    def iterations(process: Process, trace: Path) -> list:
        with process:
            times = process.ask(f"replay {trace} timed")["iteration_ns"]
        if not times:
            raise Failed("the trace has no iteration")
        return times

    stock = iterations(machine.start("stock", PACE), whole)
    ready = start(PACE)
    warm_up = ready.number("warm-up")
    ready = iterations(ready, whole)
    cold = iterations(start(PACE), begin)
    default = iterations(machine.start("pinbuddy"), whole)
    found = {
        "first_iteration_speedup": stock[0] / ready[0], "cold_first_iteration_speedup": stock[0] / cold[0],
        "warm_up_s": warm_up / 1e9, "stock": stock[0] / 1e9, "plan": ready[0] / 1e9}
    # Later iterations; the last one is the program's end.
    later = [it[1 : max(len(it) - 1, 1)] for it in (stock, ready, default)]
    if later[0] and len(later[0]) == len(later[1]) == len(later[2]):
        found |= {"pair_ratio": ratio_of_turns(later[1], later[0]), "default_pair_ratio": ratio_of_turns(later[2], later[0])}
    return found


def _pairs(machine: Machine, name: str, pattern: str, seen: dict) -> None:
    """Allocate and free in a pattern that repeats."""
    with planned(machine, requests(pattern, RECORDED)) as start:
        case = Case(name, f"pairs {PAIRS}", requests(pattern, 4 * PAIRS))
        own = measure(machine, lambda: [machine.start("stock"), start(), machine.start("pinbuddy", SYNC)], [case])[name]
    seen["pair_ratio"][name] = ratios(own, "pinbuddy-plan")
    seen["default_pair_ratio"][name] = ratios(own, "pinbuddy")
