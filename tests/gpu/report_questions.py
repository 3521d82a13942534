"""Questions and answers as Markdown. Knows the format of `measure_questions`."""

from tables import number, table

CANNOT = "cannot be asked here"


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
        parts += [f"{name}, {CANNOT}:\n\n" + "\n".join(without)] if (without := unanswered(it["answers"])) else []
    return "\n\n".join(parts)


def unanswered(answers: list[dict]) -> list[str]:
    """Why not, and what all."""
    by_why: dict[str, list[str]] = {}
    for one in answers:
        if one["answer"] == CANNOT:
            what = by_why.setdefault(one["why"], [])
            what += [one["of"]] if one["of"] not in what else []
    return [f"- {why}: {'; '.join(what)}" for why, what in by_why.items()]


def counts(answers: list[dict]) -> str:
    """How many of which kind; `no answer` where there are none."""
    said = [one["answer"] for one in answers]
    words = {"yes": "yes", "no": "no", "figure": "figures", CANNOT: "that cannot be asked here"}
    parts = [f"{said.count(kind)} {word}" for kind, word in words.items() if kind in said]
    return ", ".join(parts) or "no answer"


def answered(one: dict) -> str:
    if one["answer"] != "figure":
        return one["answer"]
    return figure(one)


def figure(it: dict) -> str:
    """The median, with the range in brackets: a question is mostly about the worst."""
    return f"{number(it['median'])} {it['unit']} ({number(it['least'])} to {number(it['most'])})"
