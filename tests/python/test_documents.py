"""What documents tell people to type works as it stands, in the simulator, with the fork and with the plug-in.

Commands are run in their order, in a folder of the document's own, with a small program as `train.py`; what a block shows of
their output is compared. Those that need more have somebody else who runs them (`documents.ELSEWHERE`). Blocks of Python are
run as they are, those of other languages are read by who reads that language. Tables are what the committed runs say, and nothing else
has figures without a reason (ci/tables.py). The numbers of docs/deploy.md's pod and job add up.
"""

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pinbuddy
import pytest
import yaml
from conftest import forking
from documents import ELSEWHERE, ROOT, VARIES, agrees, all_documents, as_a_user, blocks, commands, elsewhere

sys.path.insert(0, str(ROOT / "ci"))
import tables  # noqa: E402

sys.path.pop(0)
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
    "|=====": "test_package.py has the table's shape",
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


def test_every_table_and_the_picture_are_what_the_runs_say(capsys):
    assert tables.main(check=True) == 0, capsys.readouterr().out


def test_a_changed_figure_is_noticed(monkeypatch, capsys):
    """In any table: the committed pages are compared as a whole."""
    page = ROOT / "docs/measured.md"
    text = page.read_text()
    monkeypatch.setattr(tables, "written", lambda own, *rest, real=tables.written: real(own, *rest).replace("| 0.", "| 9.", 1))
    assert tables.main(check=True) == 1
    assert "docs/measured.md is not what the runs say" in capsys.readouterr().out and page.read_text() == text


def test_figures_of_no_run_are_noticed():
    for figure in ["0.36", "1,024 MiB", "**2.3** (2.0 to 2.6)", "5.3 to 8.9", "2, 1", "-3 %"]:
        assert tables.unmeasured(f"text\n\n| a | b |\n|---|---|\n| x | y |\n| x | {figure} |\n") == ["| a | b |"], figure
    for other in ["", "2.15.0 and later", "`8`", "two", "1 for all", "a 1", "to"]:
        assert tables.unmeasured(f"| a | b |\n|---|---|\n| x | {other} |\n") == [], other
    assert tables.unmeasured("| a | b |\n|---|---|\n| 1.2 | x |\n") == []
    assert tables.unmeasured("```\n| a | b |\n|---|---|\n| x | 1 |\n```\n") == []


PAGE = ROOT / "docs/deploy.md"
GIB = 1 << 30


def block(wanted: str) -> str:
    (text,) = (text for kind, text in blocks(PAGE) if kind == wanted)
    return text


@pytest.fixture
def pod() -> dict:
    return yaml.safe_load(block("yaml"))


def quantity(text: str) -> int:
    """Bytes of a Kubernetes quantity."""
    number, unit = re.fullmatch(r"(\d+)([KMGT]i)", text).groups()
    return int(number) << {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}[unit]


def deploy(command: list[str], **variables: str) -> subprocess.CompletedProcess:
    return as_a_user(command, forking(), **variables)


def test_what_all_ranks_pin_fits_the_pods_limit_with_room_for_the_programs(pod):
    variables = {it["name"]: it["value"] for it in pod["env"]}
    assert variables.keys() <= pinbuddy.config().keys() and all(isinstance(it, str) for it in variables.values())
    limits = pod["resources"]["limits"]
    ranks, memory = limits["nvidia.com/gpu"], quantity(limits["memory"])
    each = int(variables["BUDDY_MAX_MB"]) << 20
    pinned, pool = ranks * each, quantity(limits["hugepages-2Mi"])
    assert pinned <= memory // 2, "half of it is the programs'"
    assert pool % (2 << 20) == 0 and pool <= pinned, "what is in the pool counts in BUDDY_MAX_MB"
    comments = " ".join(re.findall(r"# (.*)", block("yaml")))
    said = [int(it) for it in re.findall(r"(\d+) GiB", comments)]
    numbers = [each, pinned, pinned, (memory - pinned) // ranks, pinned]
    assert said == [it // GIB for it in numbers] and all(it % GIB == 0 for it in numbers), comments
    assert f"the first {pool // GIB} of" in comments
    text = PAGE.read_text()
    assert f"A pod of {ranks} ranks" in text and f"less than {memory // 2 // GIB} GiB" in text


def test_the_probe_passes_where_pinbuddy_serves_or_was_turned_off_and_not_where_it_should_and_does_not(pod):
    probe = pod["startupProbe"]["exec"]["command"]
    assert probe[:2] == ["sh", "-c"]
    done = deploy(probe)
    assert done.returncode == 0 and "pinbuddy serves pinned memory." in done.stdout
    assert deploy(probe, BUDDY_DISABLE="1").returncode == 0
    assert deploy(["sh", "-c", "python -m pinbuddy doctor"], BUDDY_DISABLE="1").returncode == 1
    assert deploy(probe, PINBUDDY_SIM_DEVICES="0").returncode == 1


def test_the_job_writes_a_plan_for_each_rank(tmp_path):
    (tmp_path / "train.py").symlink_to(ROOT / "examples/offload.py")
    ranks = 'for rank in 0 1; do SLURM_PROCID=$rank SLURM_NTASKS=2 SLURM_NTASKS_PER_NODE=2 "$@" || exit 1; done'
    (srun := tmp_path / "srun").write_text(f"#!/bin/bash\n{ranks}\n")
    srun.chmod(srun.stat().st_mode | stat.S_IXUSR)
    (job := tmp_path / "job.sh").write_text(f"#!/bin/bash\nset -e\ncd {tmp_path}\nPATH={tmp_path}:$PATH\n{block('sh')}")
    for pins in (True, False):
        done = deploy(["bash", os.fspath(job)], HOME=os.fspath(tmp_path), SLURM_JOB_NAME="pretrain")
        assert done.returncode == 0, done.stderr
        later = [line.split()[3] for line in done.stdout.splitlines() if re.match(r"\s+[1-7]\s", line)]
        assert len(later) == 14 and any(it != "0" for it in later) == pins, done.stdout
    assert sorted(it.name for it in (tmp_path / "plans").iterdir()) == ["pretrain.0.plan", "pretrain.1.plan"]
