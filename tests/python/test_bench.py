"""`cargo xtask bench` (tests/bench): its command line, its documents, and traces as it reads them. Its processes are tried by `--smoke`."""

import json
import re
import shlex
import struct
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "tests/bench"
sys.path.insert(0, str(BENCH))
import harness  # noqa: E402
import results  # noqa: E402
import run as bench  # noqa: E402
import traces  # noqa: E402
import worst  # noqa: E402

sys.path.pop(0)

pytestmark = pytest.mark.checkout("tries the benchmark")


def test_a_trace_becomes_what_the_harness_reads(tmp_path):
    lines = [
        {"format": "pinbuddy-trace", "version": 5}, {"t": 5, "op": "alloc", "id": 900, "bytes": 4096},
        {"t": 6, "op": "event", "id": 900, "stream": 35}, {"t": 7, "op": "alloc", "id": 7, "bytes": 1},
        {"t": 8, "op": "free", "id": 900}, {"t": 9, "op": "iter"}, {"t": 10, "op": "alloc", "id": 8, "bytes": 2}, {"t": 11, "op": "clear"},
    ]  # fmt: skip
    source, to = tmp_path / "a.jsonl", tmp_path / "a.trace"
    source.write_text("".join(json.dumps(it) + "\n" for it in lines))
    assert traces.write_compact(source, to, False) == 4097
    data = to.read_bytes()
    assert (data[:8], struct.unpack("<QQ", data[8:24])) == (b"PBTRACE1", (2, 7)), "slots, events"
    events = [struct.unpack("<QQIHBB", data[at : at + 24])[:5] for at in range(24, len(data), 24)]
    assert events == [(5, 4096, 0, 0, 0), (6, 0, 0, 3, 2), (7, 1, 1, 0, 0), (8, 0, 0, 0, 1), (9, 0, 0, 0, 4), (10, 2, 0, 0, 0), (11, 0, 0, 0, 3)]
    traces.write_compact(source, to, True)
    assert len(to.read_bytes()) == 24 + 5 * 24, "the first iteration"
    source.write_text('{"t":1,"op":"free","id":1}\n')
    with pytest.raises(results.Failed, match="block 1 does not live"):
        traces.write_compact(source, to, False)


def test_documents_explain_each_subject_and_worst_program_and_only_the_fork_has_its_settings():
    page = (ROOT / "docs/bench.md").read_text()
    for name in harness.SUBJECTS:
        assert any(it.startswith("BUDDY_") for it in harness.settings(name, True)) == harness.is_fork(name)
        assert f"\n| {name} |" in page or f"(`{name}`) |" in page, name
    assert harness.settings("stock", False) == harness.settings("pinbuddy", False) == {}
    assert "pinned_use_cuda_host_register" in harness.settings("stock-tuned", False)["PYTORCH_ALLOC_CONF"]
    first_cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    for name in worst.NAMES:
        assert any(f"`{name}`" in it for it in first_cells), name
    for name, (command, judged) in worst.PROGRAMS.items():
        assert (worst.SCRIPTS / f"{command.split()[0]}.py").is_file() and judged, name
        if name in worst.ALONE:
            assert all(it.how == "ours" for it in judged), "it cannot be compared with stock"


def test_command_lines_of_scripts_and_documents_are_taken():
    files = [it for folder in ("ci", "ci/gpu", ".ci", ".github/workflows", "docs") for it in (ROOT / folder).iterdir() if it.is_file()]
    lines = [line for it in files for line in it.read_text(errors="replace").splitlines()]
    found = [it for line in lines for it in re.findall(r"^[^#]*?\bcargo xtask bench( [^|`#;)]*)", line) if "| `" not in line]
    assert len(found) > 5
    for words in found:
        bench.parser().parse_args(shlex.split(re.sub(r"\$\{?\w+\}?", "x", words)))
