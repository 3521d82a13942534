"""What only a GPU can answer, and designs hang on: the programs in `questions`, one after the other.

Each is a process of its own with a limit of its own, so that one that hangs or dies takes no other with it; the time
that one leaves over goes to those behind it. What a program said before it ended counts. Nothing of the allocator is
in it: stock's interpreter asks CUDA itself.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import isolated
import rig

HERE = Path(__file__).parent / "questions"
CANNOT = "cannot be asked here"
SIMULATED = "CUDA is simulated, and answers for no driver"
# Of a program's limit: what it may plan with.
PLANNED = 0.8


@dataclass(frozen=True)
class Question:
    program: str
    asked: str
    # What hangs on it.
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
        "when idle memory may be given back: at any time, or only where nothing runs",
        13,
    ),
    "bandwidth": Question(
        "bandwidth.py",
        "Do copies from shared huge pages run at cudaHostAlloc's bandwidth?",
        "whether they can be what memory is made of by default",
        9,
    ),
}


def measure(it: rig.Rig) -> None:
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
    """What was answered, and that what the program hung or died in was not."""
    found, open_question = [], None
    for line in ended.said.splitlines():
        try:
            said = json.loads(line)
        except json.JSONDecodeError:
            # The last line of a program that was stopped.
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
    """No answer, whatever the simulator has said; what that was is kept as what was tried."""
    if answer["answer"] == CANNOT:
        return answer
    kept = {"of": answer["of"], "on": answer["on"], "answer": CANNOT, "why": SIMULATED}
    return kept | {"tried": {name: value for name, value in answer.items() if name not in ("of", "on")}}


def broken(told: dict, simulated: bool) -> list[str]:
    """Programs of questions that are wrong themselves. That one hangs or dies says something of a GPU's driver, and
    of the simulator's only that it is wrong."""
    wrong = []
    for name, it in told.items():
        wrong += [f"{name}: {one['of']}: {one['why']}" for one in it["answers"] if one.get("fault")]
        if simulated and it["outcome"] != "done":
            wrong.append(f"{name}: {it['detail']}")
        if not it["answers"]:
            wrong.append(f"{name}: it asked nothing")
    return wrong


if __name__ == "__main__":
    rig.main(measure)
