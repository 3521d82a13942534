"""What documents tell people to type works as it stands, in the simulator.

Of a block of commands, those of a checkout (`cargo xtask …`) are parsed by a lint and run by other tests; those in ELSEWHERE
need what is not here. All others are run, in their order, in a folder of the document's own, with a small program as
`train.py`. What a block shows of their output is compared: `…` stands for anything, and times (numbers with a point) for any
time. Blocks of Python are run as they are.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.fork_wheel, pytest.mark.release]

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Beginnings of commands that are not run here, and why.
ELSEWHERE = {
    "cargo ": "parsed by a lint; other tests run what it names",
    "pip install ": "the plug-in's wheel is installed by a test of its own",
    "pinbuddy top --all ": "needs a program that runs beside it, as test_top.py has",
    "torchrun ": "needs a GPU for each rank",
    "BUDDY_LIVE=1 torchrun ": "the same",
    "export ": "settings of the command behind it",
    "git clone ": "fetches PyTorch",
    "cd tests/python": "a checkout's own tests",
    "PINBUDDY_TEST_SWEEP=": "an hour",
    "PINBUDDY_SIM_LOCK=": "cargo xtask sim, parsed by a lint",
    "ci/gpu/": "a test tries a run for a GPU",
    "gpu-pack/": "a test tries a run for a GPU",
    "PYTHON=": "a run for a GPU, with an environment of its own",
}


def documents() -> list[Path]:
    """Those with blocks that are run here."""
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "examples/README.md", ROOT / "ci/README.md"]
    return [it for it in sorted(texts) if it.name != "CHANGELOG.md" and list(steps(it))]


def steps(document: Path):
    """Each Python block, and each command that is run, with the lines that follow it."""
    for kind, text in BLOCK.findall(document.read_text()):
        if kind == "python":
            yield [sys.executable, "-c", text], ""
            continue
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            typed, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
            if not any(typed.startswith(it) for it in ELSEWHERE):
                yield ["bash", "-c", typed], shown


def agrees(shown: str, printed: str) -> bool:
    """Whether what a document shows is what was printed."""

    def pattern(word: str) -> str:
        if "…" in word:
            return r"[\s\S]*"
        return r"\d+\.\d+" if re.fullmatch(r"\d+\.\d+", word) else re.escape(word)

    # What was left out may be nothing.
    wanted = r"\s+".join(map(pattern, shown.split()))
    wanted = wanted.replace(r"\s+[\s\S]*", r"[\s\S]*").replace(r"[\s\S]*\s+", r"[\s\S]*")
    return re.fullmatch(rf"\s*{wanted}\s*", printed) is not None


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    """Of the program to train with, for documents that begin with one."""
    folder = tmp_path_factory.mktemp("recorded")
    run(["bash", "-c", f"BUDDY_TRACE=run.jsonl python {ROOT / 'examples/offload.py'}"], folder)
    return folder / "run.jsonl"


@pytest.fixture
def folder(tmp_path, trace):
    """A user's folder: the examples, a program to train with, a trace of it."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "train.py").symlink_to(ROOT / "examples/offload.py")
    (tmp_path / "run.jsonl").symlink_to(trace)
    return tmp_path


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess:
    """As a user who has set nothing, with this environment's programs on the PATH."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("BUDDY_")}
    own["PATH"] = f"{Path(sys.executable).parent}:{own['PATH']}"
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{shlex.join(command)} ends with {done.returncode}\n{done.stdout}{done.stderr}"
    return done


@pytest.mark.parametrize("document", documents(), ids=lambda it: str(it.relative_to(ROOT)))
def test_what_is_typed_works_and_shows_what_it_is_said_to(document, folder):
    for command, shown in steps(document):
        done = run(command, folder)
        if shown:
            printed = done.stdout + done.stderr
            assert agrees(shown, printed), f"{command[-1]} prints\n{printed}\nand the document has\n{shown}"


def test_every_reason_is_needed():
    blocks = [text for it in ROOT.rglob("*.md") if "target" not in it.parts for _, text in BLOCK.findall(it.read_text())]
    typed = [it for text in blocks for it in re.findall(r"^\$ (.*)", text, re.MULTILINE)]
    assert [it for it in ELSEWHERE if not any(line.startswith(it) for line in typed)] == []


def test_a_difference_is_noticed():
    assert agrees("step 1\n…\nwaited 3.1 ms", "step   1\nanything\n at all\nwaited 17.25 ms\n")
    assert agrees("…\nserves.", "serves.\n")
    assert not agrees("step 1", "step 2")
    assert not agrees("pins 1", "pins 1.0")
    assert not agrees("a\n…", "b\n")
