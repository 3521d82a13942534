"""Blocks of text in documents, and the commands in them."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command whose comment says so shows numbers of one run.
VARIES = "differ from run to run"


@dataclass(frozen=True)
class Elsewhere:
    """Why a command is not run by test_documents.py, and who runs it instead: a file, and words of it."""

    file: str
    words: str
    why: str = ""


_ROWS = "xtask/src/test/mod.rs"
_GPU = Elsewhere(_ROWS, 'GPU: &str = "a run for a GPU, tried in the simulator"')
_RANKS = Elsewhere("tests/python/test_ranks.py", '("fsdp", "fork"), ("ddp", "stock")', "a GPU for each rank, with NCCL")
_REPLAYED = Elsewhere("tools/src/simulate/tests.rs", "fn a_file_is_replayed_as_what_it_was_written_from")
_INDEX = Elsewhere("tests/checkout/test_index.py", "class Image", "what serves and builds an image is not ours, and needs docker")
_SOURCE = Elsewhere("ci/full-source-build.sh", "cargo xtask build-wheel --source", "PyTorch's source, and hours")

# Beginnings of commands; of several that fit, the longest counts.
ELSEWHERE = {
    "cargo xtask build-wheel": Elsewhere(_ROWS, '"build the fork wheel"'),
    "cargo xtask build-wheel --source": _SOURCE,
    "cargo xtask build-plugin": Elsewhere(_ROWS, 'PLUGIN: &str = "the plug-in as a wheel"'),
    "cargo xtask test ": Elsewhere("ci/test.sh", "cargo xtask test"),
    "cargo xtask test --only seam": Elsewhere(_ROWS, 'SEAM, |it| pytorch::own(it, &["test_seam.py"])'),
    "cargo xtask upstream-pr": Elsewhere("tests/checkout/test_upstream_pr.py", "def test_a_branch_and_patches_and_nothing_else_changes"),
    "pinbuddy verify-wheel": Elsewhere("tests/python/test_verify.py", "def test_every_changed_byte_is_refused"),
    "cargo xtask bench": Elsewhere(_ROWS, 'BENCH: &str = "a few turns of the benchmark"'),
    "pinbuddy plans why": Elsewhere("tests/python/test_auto_plans.py", '"plans", "why"'),
    "pinbuddy simulate": Elsewhere("tools/src/simulate/tests.rs", "fn tables"),
    "pinbuddy simulate --device": Elsewhere("rust-core/replay/tests/device_plans.rs", "fn a_plan_reserves_little_more_than_what_lives_at_once"),
    "pinbuddy simulate my-program.jsonl": _REPLAYED,
    "pinbuddy trace variable": _REPLAYED,
    "cargo xtask sim -- python tests/programs/measure_works.py": Elsewhere("tests/python/test_works.py", "measure.run(name", "half an hour"),
    "pinbuddy plan --instance": Elsewhere("tools/tests/program.rs", "--instance"),
    "ci/gpu/programs.sh": Elsewhere("ci/gpu/pack.sh", "ci/gpu/programs.sh", "builds for minutes; a pack needs it"),
    "cargo xtask sim -- target/gpu-pack": _GPU,
    "ci/gpu/run.sh": _GPU,
    "ci/gpu/pack.sh": Elsewhere("tests/gpu/test_parts.py", "ways.of_pack(", "builds everything; what it lays out is tested"),
    "gpu-pack/": _GPU,
    "PYTHON=": _GPU,
    "pip install ": Elsewhere("xtask/src/test/plugin.rs", "plugin.path.display()"),
    "pinbuddy top --all ": Elsewhere("tools/src/top/prometheus/tests.rs", "fn samples_are_text_that_prometheus_reads", "runs until it is stopped"),
    "torchrun ": _RANKS,
    "BUDDY_LIVE=1 torchrun ": _RANKS,
    "git clone ": _SOURCE,
    "ci/index.py ": _INDEX,
    "python -m http.server ": _INDEX,
    "docker ": _INDEX,
}


def all_documents() -> list[Path]:
    """Those for users and developers, except what tells of the past."""
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md"), *ROOT.glob("examples/*.md"), ROOT / "ci/README.md"]
    return [it for it in sorted(texts) if it.name != "CHANGELOG.md"]


def blocks(document: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(document.read_text())


def commands(text: str):
    """Each command of a console's block, its comment, and what the block shows of its output."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        typed, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
        typed, _, comment = typed.partition(" #")
        yield typed.strip(), comment.strip(), shown


def elsewhere(typed: str) -> Elsewhere | None:
    """Who runs a command instead."""
    fitting = [it for it in ELSEWHERE if f"{typed} ".startswith(it)]
    return ELSEWHERE[max(fitting, key=len)] if fitting else None


def agrees(shown: str, printed: str, varies: bool = False) -> bool:
    """Whether what a document shows is what was printed: `…` stands for anything, a number with a point for any such
    number and, where numbers vary, any number for any other."""

    def pattern(word: str) -> str:
        if "…" in word:
            return r"[\s\S]*"
        if varies and word.isdigit():
            return r"\d+"
        return r"\d+\.\d+" if re.fullmatch(r"\d+\.\d+", word) else re.escape(word)

    # What was left out may be nothing.
    wanted = r"\s+".join(map(pattern, shown.split()))
    wanted = wanted.replace(r"\s+[\s\S]*", r"[\s\S]*").replace(r"[\s\S]*\s+", r"[\s\S]*")
    return re.fullmatch(rf"\s*{wanted}\s*", printed) is not None


def as_a_user(command: list[str], python: str, *before: Path, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess:
    """Runs it as somebody does who has set nothing, with this environment's programs on the PATH, `python` and others before."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("BUDDY_")} | {"PYTHON_EXEC": python} | variables
    own["PATH"] = ":".join(map(str, [*before, Path(python).parent, Path(sys.executable).parent, own["PATH"]]))
    return subprocess.run(command, cwd=cwd, env=own, capture_output=True, text=True, timeout=300)
