"""Design questions that only a GPU can answer: starts the program `questions` (tests/gpu/questions) for each, one after the other.

Each has its own process and time limit, so that one that hangs or crashes does not affect the others; unused time goes to later ones.
Answers before a crash count. The allocator takes no part: the program calls CUDA's driver.
"""

import json

import measuring
import stage

CANNOT = "cannot be asked here"
# The share of its limit that a program may plan with.
PLANNED = 0.8
# What is asked, the design that depends on the answer, and seconds.
QUESTIONS = {
    "pace": ("What do cudaHostRegister and cudaHostUnregister cost by piece and page, alone and from four threads?",
             "how long a piece is, and whether a second thread pins anything sooner", 22),
    "stalls": ("Do launches, copies and cudaMemGetInfo wait while a region is registered?",
               "whether pieces need pauses between them, and processes of a node turns", 21),
    "unpinning": ("Do pins and unpins wait for the device?",
                  "when idle memory may be unpinned: at any time, or only while nothing runs", 4),
}


def measure(it: measuring.Fixture) -> None:
    left, shares = it.seconds, sum(seconds for _, _, seconds in QUESTIONS.values())
    told: dict[str, dict] = {}
    for name, (asked, then, seconds) in QUESTIONS.items():
        limit = left * seconds / shares
        print(f"{name}, {limit:.0f} s at most", flush=True)
        command = [str(it.programs / "questions"), name, f"{PLANNED * limit}"]
        log = it.out.with_suffix(f".{name.replace(' ', '-')}.log")
        ended = stage.run(command, limit, log, keep=True)
        print(log.read_text(errors="replace"), end="", flush=True)
        shares -= seconds
        left -= ended.seconds
        told[name] = {"asked": asked, "then": then, "outcome": ended.outcome, "seconds": ended.seconds}
        told[name] |= {"limit_s": round(limit, 1), "detail": ended.detail, "answers": answers(ended)}
        it.write(told)


def answers(ended: stage.Ended) -> list[dict]:
    """The answers, and the question in which the program hung or crashed."""
    found, open_question = [], None
    for line in ended.said.splitlines():
        try:
            said = json.loads(line)
        except json.JSONDecodeError:
            # The last line of a stopped program may be cut off.
            continue
        open_question = said if "asking" in said else None
        found += [] if open_question else [said]
    if ended.outcome != "done":
        asking = open_question or {"asking": "the rest", "on": ""}
        found.append({"of": asking["asking"], "on": asking["on"], "answer": CANNOT, "why": ended.detail})
    return found


def broken(told: dict, simulated: bool) -> list[str]:
    """Defective questions. A hang or crash tells about a GPU's driver; in the simulator it is a defect."""
    wrong = []
    for name, it in told.items():
        wrong += [f"{name}: {one['of']}: {one['why']}" for one in it["answers"] if one.get("fault")]
        if simulated and it["outcome"] != "done":
            wrong.append(f"{name}: {it['detail']}")
        unreached = [one["why"] for one in it["answers"] if one["of"] == "CUDA's driver" and one["answer"] == CANNOT]
        if unreached and not simulated:
            wrong.append(f"{name}: it has reached no driver, though torch has: {unreached[0]}")
        if not it["answers"]:
            wrong.append(f"{name}: it asked nothing")
    return wrong
