"""Design questions that only a GPU can answer: runs the programs in `questions`, one after the other.

Each runs in its own process with its own time limit, so that one that hangs or crashes does not affect the others;
unused time goes to later ones. Answers before a crash count. The allocator takes no part: stock's interpreter calls
CUDA directly.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import isolated
import fixture

HERE = Path(__file__).parent / "questions"
CANNOT = "cannot be asked here"
SIMULATED = "CUDA is simulated, and answers for no driver"
# The share of its limit that a program may plan with.
PLANNED = 0.8


@dataclass(frozen=True)
class Question:
    program: str
    asked: str
    # The design decision that depends on the answer.
    then: str
    seconds: float


QUESTIONS = {
    "crossing": Question(
        "crossing.py",
        "May one copy and one kernel's access cross two registrations side by side?",
        "if so: one arena that grows and shrinks in pieces, where a block may lie anywhere",
        13,
    ),
    "host pieces": Question(
        "host_pieces.py",
        "Is host memory in the driver's own pieces (cuMemCreate) as good, and at what price?",
        "if so: the same arena, made of the driver's pieces, with no pages of ours",
        10,
    ),
    "pace": Question(
        "pace.py",
        "What does cudaHostRegister cost by piece and page, alone and from four threads?",
        "how long a piece is, and whether a second thread pins anything sooner",
        22,
    ),
    "stalls": Question(
        "stalls.py",
        "Do launches, copies and cudaMemGetInfo wait while a region is registered?",
        "whether pieces need pauses between them, and processes of a node turns",
        21,
    ),
    "unpinning": Question(
        "unpinning.py",
        "What does cudaHostUnregister cost, and does it wait for the device?",
        "when idle memory may be unpinned: at any time, or only while nothing runs",
        13,
    ),
    "bandwidth": Question(
        "bandwidth.py",
        "Do copies from shared huge pages run at cudaHostAlloc's bandwidth?",
        "whether they can be what memory is made of by default",
        9,
    ),
}


def measure(it: fixture.Fixture) -> None:
    python, way = it.ways["stock"].python, it.ways["stock"]
    left, shares = it.seconds, sum(question.seconds for question in QUESTIONS.values())
    told: dict[str, dict] = {}
    for name, question in QUESTIONS.items():
        limit = left * question.seconds / shares
        print(f"{name}, {limit:.0f} s at most", flush=True)
        command = [python, str(HERE / question.program), "simulated" if it.simulated else "real", f"{PLANNED * limit}"]
        log = it.out.with_suffix(f".{question.program}.log")
        ended = isolated.run(command, way.environment(), limit, log)
        print(log.read_text(errors="replace"), end="", flush=True)
        shares -= question.seconds
        left -= ended.seconds
        told[name] = {
            "asked": question.asked,
            "then": question.then,
            "outcome": ended.outcome,
            "seconds": ended.seconds,
            "limit_s": round(limit, 1),
            "detail": ended.detail,
            "answers": answers(ended, it.simulated),
        }
        it.write(told)


def answers(ended: isolated.Ended, simulated: bool) -> list[dict]:
    """The answers, and the question in which the program hung or crashed."""
    found, open_question = [], None
    for line in ended.said.splitlines():
        try:
            said = json.loads(line)
        except json.JSONDecodeError:
            # The last line of a stopped program may be cut off.
            continue
        if "asking" in said:
            open_question = said
        else:
            found.append(said)
            open_question = None
    if ended.outcome != "done":
        asking = open_question or {"asking": "the rest", "on": ""}
        found.append({"of": asking["asking"], "on": asking["on"], "answer": CANNOT, "why": ended.detail})
    return [of_simulator(one) for one in found] if simulated else found


def of_simulator(answer: dict) -> dict:
    """Replaces the simulator's answers by "no answer", and keeps them as what was tried."""
    if answer["answer"] == CANNOT:
        return answer
    kept = {"of": answer["of"], "on": answer["on"], "answer": CANNOT, "why": SIMULATED}
    return kept | {"tried": {name: value for name, value in answer.items() if name not in ("of", "on")}}


def broken(told: dict, simulated: bool) -> list[str]:
    """Defective question programs. A hang or crash tells about a GPU's driver; in the simulator it is a defect."""
    wrong = []
    for name, it in told.items():
        wrong += [f"{name}: {one['of']}: {one['why']}" for one in it["answers"] if one.get("fault")]
        if simulated and it["outcome"] != "done":
            wrong.append(f"{name}: {it['detail']}")
        if not it["answers"]:
            wrong.append(f"{name}: it asked nothing")
    return wrong


if __name__ == "__main__":
    fixture.main(measure)
