"""The results as Markdown. Knows the format of results.json, and measures nothing."""

import suites


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
    title = "# In the simulator: no figure here says anything of a GPU" if results["simulated"] else "# On a real GPU"
    about = results["machine"] | {name: results[name] for name in ("seconds", "quick", "warnings")}
    parts = [title, figures("machine", about), _targets(results["targets"]), _stages(results["stages"]), _tests(results["tests"])]
    parts += [questions(own) if name == "questions" else figures(name, own) for name, own in results["measured"].items()]
    return "\n\n".join(parts) + "\n"


def _targets(judged: list[dict]) -> str:
    head = ["figure", "median (quartiles)", "wanted", "verdict"]
    return table(head, [[it["name"], "" if it["value"] is None else ranged(it), it["wanted"], it["verdict"]] for it in judged])


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


def figures(title: str, measured: dict) -> str:
    """What a stage has measured, by the keys of results.json: where dictionaries have the same keys, one table has them."""
    tables: dict[tuple, dict[str, dict]] = {}
    for path, own in _flat(measured):
        tables.setdefault(tuple(own), {})[", ".join(path)] = own
    parts = []
    for keys, by in tables.items():
        if len(keys) > len(by):
            keys, by = tuple(by), {key: {name: own[key] for name, own in by.items()} for key in keys}
        parts.append(table([title, *keys], [[name, *own.values()] for name, own in by.items()]))
    return "\n\n".join(parts)


def _flat(it: dict, path: tuple = ()):
    """Each dictionary with what stands in cells: figures, numbers, answers and the last lines of errors."""
    cells = {}
    for name, own in it.items():
        if isinstance(own, dict) and "quartiles" not in own:
            yield from _flat(own, (*path, name))
        elif own is None or isinstance(own, dict):
            cells[name] = ranged(own)
        elif isinstance(own, bool):
            cells[name] = "yes" if own else "no"
        elif isinstance(own, (int, float)):
            cells[name] = str(own) if isinstance(own, int) else number(own)
        else:
            # Lists of figures have a median elsewhere, or a plot.
            lines = [line for line in ([own] if isinstance(own, str) else own) if isinstance(line, str)]
            cells |= {name: "; ".join(line.strip().rpartition("\n")[2] for line in lines).replace("|", "/")} if lines else {}
    if cells:
        yield path, cells


def questions(asked: dict) -> str:
    """First each question with what hangs on it, then all answers with their evidence."""
    parts = [figures("what only a GPU can answer", {it["asked"]: {name: it[name] for name in ("outcome", "detail", "then")} for it in asked.values()})]
    for name, it in asked.items():
        answers = {(one["of"], one["on"]): {"answer": answered(one), "why": one.get("why", "")} for one in it["answers"]}
        parts += [figures(f"{name}: asked", {", ".join(of): told for of, told in answers.items()})] if answers else []
    return "\n\n".join(parts)


def answered(one: dict) -> str:
    """A figure's median has the range in brackets: a question is mostly about the worst."""
    if one["answer"] != "figure":
        return one["answer"]
    return f"{number(one['median'])} {one['unit']} ({number(one['least'])} to {number(one['most'])})"
