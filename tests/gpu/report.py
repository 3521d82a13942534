"""The results as Markdown. Knows the format of results.json, and measures nothing."""

import suites
from report_questions import questions
from tables import ranged, table


def markdown(results: dict) -> str:
    """All of it; each part only where it was measured."""
    parts = [_head(results), _targets(results["targets"]), _stages(results["stages"]), _tests(results["tests"])]
    measured = results["measured"]
    for name, part in PARTS.items():
        if name in measured:
            parts.append(part(measured[name]))
    return "\n\n".join(parts) + "\n"


def _head(results: dict) -> str:
    machine = results["machine"]
    title = "# On a real GPU"
    if results["simulated"]:
        title = "# In the simulator: no figure here says anything of a GPU"
    about = [
        f"{machine['gpu']}; {machine['nvidia_smi'] or 'no nvidia-smi'}",
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['kernel']}",
        f"torch {machine['stock_torch']}, ours {machine['ours_torch']} with pinbuddy {machine['pinbuddy']}, "
        f"Python {machine['python']}, {machine['glibc']}",
        f"{machine['date']}, {results['seconds']:.0f} s{', --quick' if results['quick'] else ''}",
        *(f"note: {it}" for it in results["warnings"]),
    ]
    return title + "\n\n" + "\n".join(f"- {it}" for it in about)


def _targets(judged: list[dict]) -> str:
    rows = []
    for it in judged:
        value = "" if it["value"] is None else ranged(it, "value")
        rows.append([it["name"], value, it["wanted"], it["verdict"]])
    return table(["figure", "median (quartiles)", "wanted", "verdict"], rows)


def _stages(stages: list[dict]) -> str:
    rows = [
        [it["name"], it["outcome"], f"{it['seconds']:.0f} of {it['budget_s']:.0f}", it["detail"].replace("|", "/")]
        for it in stages
    ]
    return table(["stage", "outcome", "seconds", ""], rows)


def _tests(tests: dict) -> str:
    rows, wrong = [], []
    for suite, it in tests.items():
        for title, outcomes in it["runs"].items():
            counted = [outcome for outcome, _ in outcomes.values()]
            counts = [str(counted.count(word)) for word in ("passed", "failed", "crashed", "skipped")]
            rows.append([suite, title, *counts])
        wrong += [f"- {suite}: {line}" for line in suites.broken(it["runs"])]
    text = table(["tests", "with", "passed", "failed", "crashed", "skipped"], rows)
    return text + ("\n\nNot as with stock:\n\n" + "\n".join(wrong) if wrong else "")


def _pins(it: dict) -> str:
    rows = []
    for name, cost in it["s_per_gib"].items():
        faster = ranged(it["times_faster"][name], "ratio") if name in it["times_faster"] else ""
        rows.append([name, ranged(cost), faster, f"{it['huge'][name]:.0%}"])
    return table(["pinning, by pages and threads", "s a GiB", "times faster than cudaHostAlloc", "huge pages"], rows)


def _first(it: dict) -> str:
    row = ["the first 64 MiB, ms"]
    for way in ("stock", "ours"):
        scaled = {"median": it["seconds"][way]["median"] * 1e3}
        scaled["quartiles"] = [1e3 * value for value in it["seconds"][way]["quartiles"]]
        row.append(ranged(scaled))
    return table(["", "stock", "ours", "ratio"], [[*row, ranged(it["ratio"], "ratio")]])


def _pairs(it: dict) -> str:
    rows = [
        [pattern, ranged(own["stock"]), ranged(own["ours"]), ranged(it["ratio"][pattern], "ratio")]
        for pattern, own in it["ns"].items()
    ]
    return table(["allocate + free of a cached block, ns", "stock", "ours", "ratio"], rows)


def _bandwidth(it: dict) -> str:
    rows = []
    for direction, by_size in it["gb_per_s"].items():
        for size, own in by_size.items():
            for name, speed in own.items():
                over = it["ratio"][direction][size].get(name)
                rows.append([f"{direction}, {size}", name, ranged(speed), ranged(over, "ratio") if over else ""])
    return table(["copies", "memory", "GB/s", "over stock's"], rows)


STEP_ROWS = {
    "first_steps_s": "first 10 steps, s",
    "allocating_s": "of it in allocation, s",
    "steady_step_s": "a steady step, s",
    "prepare_s": "before the first step, s",
    "with_prepare_s": "until the tenth step is over, s",
    "driver_s": "in the driver for pins until then, s",
    "requests": "pinned requests in 10 steps",
    "pins": "pins in 10 steps",
    "peak_pinned_gib": "pinned at most, GiB",
}


def _steps(title: str):
    def part(it: dict) -> str:
        rows = []
        for what, words in STEP_ROWS.items():
            row = [words]
            for name, figures in it["figures"].items():
                over = it["ratio"].get(name, {}).get(what)
                row.append(ranged(figures[what]) + (f"; {ranged(over, 'ratio')} of stock's" if over else ""))
            rows.append(row)
        return table([title, *it["figures"]], rows)

    return part


def _clients(it: dict) -> str:
    rows, wrong = [], []
    for name, client in it.items():
        for figure, own in client["figures"].items():
            over = ranged(own["ratio"], "ratio") if own["ratio"] else ""
            rows.append([f"{name}: {figure}, {own['unit']}", ranged(own["stock"]), ranged(own["ours"]), over])
        wrong += [f"- {name} {line.strip().splitlines()[-1]}" for line in client["wrong"]]
    text = table(["programs of users'", "stock", "ours", "ratio"], rows)
    return text + ("\n\nThese did not come to their end:\n\n" + "\n".join(wrong) if wrong else "")


DEVICE_ROWS = {
    "reserved_gib": "reserved at most, GiB",
    "efficiency": "requested at most, over it",
    "step_s": "a step, s",
}


def _device(it: dict) -> str:
    rows = []
    for what, words in DEVICE_ROWS.items():
        row = [words]
        for name, figures in it["figures"].items():
            over = it["ratio"].get(name, {}).get(what)
            row.append(ranged(figures[what]) + (f"; {ranged(over, 'ratio')} of stock's" if over else ""))
        rows.append(row)
    title = f"device memory, {it['parameters'] / 1e9:.2f} billion parameters, six lengths"
    said = [
        f"- {name}: " + ", ".join(f"{own[what]} {what}" for what in ("hits", "misses", "unplanned", "borrowed"))
        + ("; dropped, since memory was short" if own["dropped"] else "")
        for name, own in it["served"].items()
    ]
    return table([title, *it["figures"]], rows) + "\n\nRequests of the plan's streams:\n\n" + "\n".join(said)


PARTS = {
    "questions": questions,
    "pins": _pins,
    "first": _first,
    "pairs": _pairs,
    "bandwidth": _bandwidth,
    "transformer": _steps("a transformer, activations offloaded"),
    "optimizer": _steps("an offloaded optimizer's step"),
    "device": _device,
    "clients": _clients,
}
