"""The results as Markdown. Knows the format of results.json, and measures nothing."""

import suites
from measure_questions import CANNOT


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table with padded columns, readable as plain text."""
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |"

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, rows)])


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def ranged(it: dict | None, scale: float = 1) -> str:
    """A median or a ratio with its quartiles; nothing where there is none."""
    if it is None:
        return ""
    middle = next(it[word] for word in ("median", "ratio", "value") if word in it)
    middle, low, high = (number(scale * value) for value in (middle, *it["quartiles"]))
    return f"{middle} ({low} to {high})"


def markdown(results: dict) -> str:
    """All of it; each part only where it was measured."""
    parts = [_head(results), _targets(results["targets"]), _stages(results["stages"]), _tests(results["tests"])]
    parts += [part(results["measured"][name]) for name, part in PARTS.items() if name in results["measured"]]
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
    head = ["figure", "median (quartiles)", "wanted", "verdict"]
    return table(head, [
        [it["name"], "" if it["value"] is None else ranged(it), it["wanted"], it["verdict"]] for it in judged
    ])


def _stages(stages: list[dict]) -> str:
    return table(["stage", "outcome", "seconds", ""], [
        [it["name"], it["outcome"], f"{it['seconds']:.0f} of {it['budget_s']:.0f}", it["detail"].replace("|", "/")]
        for it in stages
    ])


def _tests(tests: dict) -> str:
    rows, wrong = [], []
    for suite, it in tests.items():
        for title, outcomes in it["runs"].items():
            counted = [outcome for outcome, _ in outcomes.values()]
            counts = [str(counted.count(word)) for word in ("passed", "failed", "crashed", "skipped", suites.NOT_RUN)]
            rows.append([suite, title, *counts])
        wrong += [f"- {suite}: {line}" for line in suites.broken(it["runs"])]
    text = table(["tests", "with", "passed", "failed", "crashed", "skipped", suites.NOT_RUN], rows)
    return text + ("\n\nNot as with stock:\n\n" + "\n".join(wrong) if wrong else "")


def _pins(it: dict) -> str:
    head = ["pinning, by pages and threads", "s a GiB", "times faster than cudaHostAlloc", "huge pages"]
    return table(head, [
        [name, ranged(cost), ranged(it["times_faster"].get(name)), f"{it['huge'][name]:.0%}"]
        for name, cost in it["s_per_gib"].items()
    ])


def _first(it: dict) -> str:
    times = [ranged(it["seconds"][way], 1e3) for way in ("stock", "ours")]
    return table(["", "stock", "ours", "ratio"], [["the first 64 MiB, ms", *times, ranged(it["ratio"])]])


def _pairs(it: dict) -> str:
    return table(["allocate + free of a cached block, ns", "stock", "ours", "ratio"], [
        [pattern, ranged(own["stock"]), ranged(own["ours"]), ranged(it["ratio"][pattern])]
        for pattern, own in it["ns"].items()
    ])


def _bandwidth(it: dict) -> str:
    return table(["copies", "memory", "GB/s", "over stock's"], [
        [f"{direction}, {size}", name, ranged(speed), ranged(it["ratio"][direction][size].get(name))]
        for direction, by_size in it["gb_per_s"].items()
        for size, own in by_size.items()
        for name, speed in own.items()
    ])


def _in_place(it: dict) -> str:
    rows, said = [], []
    for name, own in it.items():
        costs, copies, ends = (own.get(part, {}) for part in ("costs", "copies", "ends"))
        told = [copies.get(f"{which} {way}", {}) for way in ("to", "back") for which in ("pinned", "unpinned")]
        cells = [f"{ranged(one['gb_per_s'])}{'' if one['returned_first'] else ', call waits'}" if one else "" for one in told]
        waits = ", ".join(number(1e3 * ends[way]["act_s"]) for way in ("unpin_", "del") if way in ends)
        rows.append([name, ranged(costs.get("pin")), ranged(costs.get("unpin")), *cells, waits])
        said += [f"- {name}: {part}: {told['error'].splitlines()[-1]}" for part, told in own.items() if part != "bytes" and "error" in told]
    head = ["in place", "pin, s a GiB", "unpin", "to, GB/s", "unpinned", "back, GB/s", "unpinned", "unpin_, del in a copy, ms"]
    return table(head, rows) + "\n\n" + "\n".join(said)


def _beside_stock(title: str, it: dict, words: dict[str, str]) -> str:
    """A column for each way of running the same, each but stock's with its ratio to stock."""
    rows = []
    for what, said in words.items():
        over = {name: ranged(it["ratio"].get(name, {}).get(what)) for name in it["figures"]}
        rows.append([said, *(
            ranged(figures[what]) + (f"; {over[name]} of stock's" if over[name] else "")
            for name, figures in it["figures"].items()
        )])
    return table([title, *it["figures"]], rows)


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
DEVICE_ROWS = {
    "reserved_gib": "reserved at most, GiB",
    "efficiency": "requested at most, over it",
    "step_s": "a step, s",
}


def _device(it: dict) -> str:
    title = f"device memory, {it['parameters'] / 1e9:.2f} billion parameters, six lengths"
    said = [
        f"- {name}: " + ", ".join(f"{own[what]} {what}" for what in ("hits", "misses", "unplanned", "borrowed"))
        + ("; dropped, since memory was short" if own["dropped"] else "")
        for name, own in it["served"].items()
    ]
    return _beside_stock(title, it, DEVICE_ROWS) + "\n\nRequests of the plan's streams:\n\n" + "\n".join(said)


def _clients(it: dict) -> str:
    rows, wrong = [], []
    for name, client in it.items():
        for figure, own in client["figures"].items():
            cells = [ranged(own[which]) for which in ("stock", "ours", "ratio")]
            rows.append([f"{name}: {figure}, {own['unit']}", *cells])
        wrong += [f"- {name} {line.strip().splitlines()[-1]}" for line in client["wrong"]]
    text = table(["programs of users'", "stock", "ours", "ratio"], rows)
    return text + ("\n\nThese did not come to their end:\n\n" + "\n".join(wrong) if wrong else "")


def questions(asked: dict) -> str:
    """First each question with its short answer, then all answers with their evidence."""
    rows = []
    for it in asked.values():
        ended = "" if it["outcome"] == "done" else f"; {it['detail']}"
        rows.append([it["asked"], counts(it["answers"]) + ended.replace("|", "/"), it["then"]])
    parts = [table(["what only a GPU can answer", "answers", "what hangs on it"], rows)]
    for name, it in asked.items():
        told = [one for one in it["answers"] if one["answer"] != CANNOT]
        rows = [[one["of"], one["on"], answered(one), one.get("why", "").replace("|", "/")] for one in told]
        parts += [table([f"{name}: asked", "on", "answer", ""], rows)] if rows else []
        # Why not, and what all.
        by_why: dict[str, dict] = {}
        for one in it["answers"]:
            if one["answer"] == CANNOT:
                by_why.setdefault(one["why"], {})[one["of"]] = None
        without = [f"- {why}: {'; '.join(what)}" for why, what in by_why.items()]
        parts += [f"{name}, {CANNOT}:\n\n" + "\n".join(without)] if without else []
    return "\n\n".join(parts)


def counts(answers: list[dict]) -> str:
    """How many of which kind; `no answer` where there are none."""
    said = [one["answer"] for one in answers]
    words = {"yes": "yes", "no": "no", "figure": "figures", CANNOT: "that cannot be asked here"}
    return ", ".join(f"{said.count(kind)} {word}" for kind, word in words.items() if kind in said) or "no answer"


def answered(one: dict) -> str:
    """A figure's median has the range in brackets: a question is mostly about the worst."""
    if one["answer"] != "figure":
        return one["answer"]
    return f"{number(one['median'])} {one['unit']} ({number(one['least'])} to {number(one['most'])})"


PARTS = {
    "questions": questions,
    "pins": _pins,
    "first": _first,
    "pairs": _pairs,
    "bandwidth": _bandwidth,
    "in place": _in_place,
    "transformer": lambda it: _beside_stock("a transformer, activations offloaded", it, STEP_ROWS),
    "optimizer": lambda it: _beside_stock("an offloaded optimizer's step", it, STEP_ROWS),
    "device": _device,
    "clients": _clients,
}
