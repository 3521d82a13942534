"""What documents tell people to type works as it stands, in the simulator, with the fork and with the plug-in.

Commands are run in their order, in a folder of the document's own, with a small program as `train.py`; what a block shows of
their output is compared. Those that need more have somebody else who runs them (`documents.ELSEWHERE`). Blocks of Python are
run as they are, those of other languages are read by who reads that language.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import forking
from documents import ELSEWHERE, ROOT, VARIES, agrees, all_documents, as_a_user, blocks, commands, elsewhere

pytestmark = pytest.mark.checkout("they are in docs")

# In place of cargo, which the tested environment need not have: the tests are in the simulator already, and the commands of a
# checkout that are the program in the wheel are that program.
CARGO = f"""#!/bin/bash
[ "$1" = pinbuddy ] && exec "$@"
[ "$1" = xtask ] || exit 90
shift
case "$1" in
    venv) exit 0 ;;
    sim) shift ;;
    *) echo "nobody runs cargo xtask $1" >&2; exit 91 ;;
esac
if [ "$1" = --devices ]; then export PINBUDDY_SIM_DEVICES=$2; shift 2; fi
[ "$1" = -- ] && shift
exec "$@"
"""


def runs(document: Path) -> bool:
    """Whether anything of it is run here."""
    return any(
        kind == "python" or (kind == "console" and any(not elsewhere(typed) for typed, _, _ in commands(text)))
        for kind, text in blocks(document)
    )


@pytest.fixture(scope="module")
def bin(tmp_path_factory) -> Path:
    """A folder of programs that stand before others."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "cargo").write_text(CARGO)
    # The command as pip installs it would start programs for real; test_command.py has that one.
    (folder / "pinbuddy").write_text('#!/bin/sh\nexec python -m pinbuddy "$@"\n')
    for name in ("cargo", "pinbuddy"):
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def trace(tmp_path_factory, bin) -> Path:
    """Of the program to train with, for documents that begin with one."""
    folder = tmp_path_factory.mktemp("recorded")
    run(["bash", "-c", f"BUDDY_TRACE=run.jsonl python {ROOT / 'examples/offload.py'}"], folder, bin)
    return folder / "run.jsonl"


@pytest.fixture
def folder(tmp_path, trace):
    """A user's folder: the examples, a program to train with, a trace of it."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "train.py").symlink_to(ROOT / "examples/offload.py")
    (tmp_path / "run.jsonl").symlink_to(trace)
    return tmp_path


def run(command: list[str], folder: Path, bin: Path, **variables: str) -> subprocess.CompletedProcess:
    """Requires that it succeeds, with programs that stand before others."""
    # `pinbuddy top` looks at the process that it has started.
    python = sys.executable if "--launch" in command[-1] else forking()
    done = as_a_user(command, python, bin, cwd=folder, **variables)
    assert done.returncode == 0, f"{shlex.join(command)} ends with {done.returncode}\n{done.stdout}{done.stderr}"
    return done


# What the README shows is tried with the fork wheel, too.
README = pytest.param(ROOT / "README.md", marks=pytest.mark.release)
RUN = [README, *(it for it in all_documents() if it != ROOT / "README.md" and runs(it))]


@pytest.mark.parametrize("document", RUN, ids=lambda it: str(it.relative_to(ROOT)))
def test_what_is_typed_works_and_shows_what_it_is_said_to(document, folder, bin):
    for kind, text in blocks(document):
        if kind == "python":
            run(["python", "-c", text], folder, bin)
        exported = ""
        for typed, comment, shown in commands(text) if kind == "console" else ():
            if typed.startswith("export "):
                exported += f"{typed}\n"
            elif not elsewhere(typed):
                done = run(["bash", "-c", exported + typed], folder, bin)
                printed = done.stdout + done.stderr
                good = not shown or agrees(shown, printed, VARIES in comment)
                assert good, f"{typed} prints\n{printed}\nand the document has\n{shown}"


def test_what_the_readme_shows_in_python_pins_what_it_asks_for(folder, bin):
    [text] = [text for kind, text in blocks(ROOT / "README.md") if kind == "python"]
    text += "import time; time.sleep(3); print(pinbuddy.stats()['engine']['pinned_bytes']['peak'] / batch.nbytes)"
    assert float(run(["python", "-c", text], folder, bin).stdout.split()[-1]) <= 1.25


def test_every_command_that_is_not_run_here_is_run_by_somebody():
    typed = [typed for it in all_documents() for kind, text in blocks(it) if kind == "console" for typed, _, _ in commands(text)]
    for start, other in ELSEWHERE.items():
        assert other in map(elsewhere, typed), f"nothing begins with {start!r}"
        assert other.words in (ROOT / other.file).read_text(), f"{start!r}: {other.file} has no {other.words!r}"
    assert sum(elsewhere(it) is None for it in typed) > 25


# Blocks of no language: pictures, and what programs print. By their beginnings.
PICTURES = {
    "  torch.empty(n": "the layers",
    "  xtask ──> build": "the build tool's crates",
    "rust-core/engine  ": "the rooms",
    "|=====": "test_summary.py has the table's shape",
    "pinbuddy top: 2 processes": "test_top.py has the screen",
    "72 requests; peak 492.00 MiB": "a plan of pinned memory; its command's tests have the shape",
    "3853 requests, of which plans": "a plan of device memory; its command's tests have the shape",
}


def read_block(kind: str, text: str, folder: Path, bin: Path) -> None:
    """Has a block read by who reads such a block; fails where that is nobody."""
    if kind == "yaml":
        assert isinstance(yaml.safe_load(text), dict)
    elif kind == "json":
        for line in text.splitlines():
            assert isinstance(json.loads(line), dict)
        if '"pinbuddy-trace"' in text:
            (folder / "block.jsonl").write_text(text)
            run(["pinbuddy", "report", "block.jsonl"], folder, bin)
    elif kind == "toml":
        (folder / "site.toml").write_text(text)
        done = run(["python", "-m", "pinbuddy"], folder, bin, PINBUDDY_SITE=str(folder / "site.toml"))
        assert "site.toml" in done.stdout and "site.toml" not in done.stderr, done.stderr
    elif kind == "dockerfile":
        assert ROOT.joinpath("docs/deploy.md").read_text().count(text) == 1, "test_index.py runs the one of that page"
    elif kind == "sh":
        run(["bash", "-n", "-c", text], folder, bin)
    elif kind == "c++":
        source = f"#include <dlfcn.h>\nvoid program(const char* path) {{\n{text}}}\n"
        (folder / "block.cpp").write_text(source)
        run(["g++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", "block.cpp"], folder, bin)
    elif text.startswith("pinbuddy: "):
        if "…" not in text:
            run(["pinbuddy", "explain", text.strip()], folder, bin)
    else:
        assert kind in ("", "text") and any(text.startswith(it) for it in PICTURES), f"nobody reads this block:\n{text}"


OTHERS = [it for it in all_documents() if any(kind not in ("python", "console") for kind, _ in blocks(it))]


@pytest.mark.parametrize("document", OTHERS, ids=lambda it: str(it.relative_to(ROOT)))
def test_blocks_of_other_languages_can_be_read(document, folder, bin):
    for kind, text in blocks(document):
        if kind not in ("python", "console"):
            read_block(kind, text, folder, bin)
