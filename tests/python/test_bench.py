"""`cargo xtask bench` (tests/bench): what it makes of measurements, and its command line. Its processes are tried by `--smoke`."""

import json
import re
import shlex
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "tests/bench"
sys.path.insert(0, str(BENCH))
import gpu_charts  # noqa: E402
import harness  # noqa: E402
import results  # noqa: E402
import run as bench  # noqa: E402
import scripts  # noqa: E402
import traces  # noqa: E402
import worst  # noqa: E402

sys.path.pop(0)

pytestmark = pytest.mark.checkout("tries the benchmark")


def some() -> results.Results:
    it = results.Results()
    it.rounds(("hit_pair_ratio", "8MiB"), [0.7, 0.9, 0.75], results.at_most(0.8))
    it.rounds(("hit_pair_ratio", "mixed"), [0.9, 0.89, 0.91], results.at_most(0.8))
    it.value(("first", "ready"), 1234.567, results.at_least(10.0))
    it.value(("context", "slowest"), 1.5)
    it.skipped["rmm"] = "its pool asks a real driver"
    it.details["hit"] = {"stock_ns": 72.0}
    return it


def test_figures_have_four_digits_and_their_spread():
    found = some().json({"rounds": 3})
    assert found == {
        "hit_pair_ratio": {"8MiB": 0.75, "mixed": 0.9},
        "first": {"ready": 1235.0},
        "context": {
            "rounds": 3, "slowest": 1.5, "details": {"hit": {"stock_ns": 72.0}}, "skipped": {"rmm": "its pool asks a real driver"},
            "spread": {"hit_pair_ratio": {"8MiB": [0.7, 0.9], "mixed": [0.89, 0.91]}},
        },
    }  # fmt: skip
    assert [results.rounded(it) for it in (0.0, 0.00123456, 123456.0, float("nan"))] == [0.0, 0.001235, 123500.0, None]


def test_each_figure_with_a_target_is_judged():
    said = str(some())
    assert re.search(r"hit_pair_ratio mixed +0\.900 +<= 0\.8 +no +0\.890 to 0\.910\n", said)
    assert re.search(r"first ready +1234\.567 +>= 10\.0 +yes\n", said)
    assert "2 of 3 targets met\nleft out: rmm: its pool" in said
    assert [it.path for it in some().missed()] == [("hit_pair_ratio", "mixed")]
    assert results.at_most(0.8).met(0.8) and results.at_least(0.8).met(0.8), "a bound is met by itself"


def test_a_disturbance_that_meets_both_cancels():
    stock, ours = [10.0, 12.0, 90.0, 11.0], [5.0, 6.0, 45.0, 50.0]
    assert results.ratio_of_turns(ours, stock) == 0.5
    assert harness.ratios({"stock": [stock, stock], "pinbuddy": [ours, stock]}, "pinbuddy") == [0.5, 1.0]
    with pytest.raises(ValueError):
        results.ratio_of_turns(ours, stock[1:])


class Fake:
    """A process that answers how often it was asked."""

    def __init__(self, name):
        self.name, self.asked, self.closed = name, 0, False

    def number(self, line, field):
        assert (line, field) == ("pairs 1", "ns")
        self.asked += 1
        ORDER.append(self.name)
        return float(self.asked)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True


ORDER = []


def test_who_goes_first_rotates_and_each_round_has_its_own_processes(tmp_path):
    machine = harness.Machine(tmp_path, tmp_path, tmp_path, {}, True, tmp_path, rounds=2, turns=3)
    begun = []

    def start():
        begun.extend(new := [Fake("stock"), Fake("ours"), Fake("gone")])
        return new

    ORDER.clear()
    case = harness.Case("a", "pairs 1", lambda it: it.name != "gone")
    seen = harness.measure(machine, start, [case], pinned=False)
    assert seen == {"a": {"stock": [[1.0, 2.0, 3.0]] * 2, "ours": [[1.0, 2.0, 3.0]] * 2}}
    assert ORDER[:6] == ["stock", "ours", "ours", "stock", "stock", "ours"]
    assert len(begun) == 6 and all(it.closed for it in begun)


def answering(text: str) -> harness.Process:
    return harness.Process("stock", [sys.executable, "-c", f"input(); print({text!r})"], {})


def test_answers_are_numbers_by_name_or_refusals():
    with answering("ns=72.5 iteration_ns=1,2.5,3e3 none=") as process:
        assert process.ask("pairs 1") == {"ns": [72.5], "iteration_ns": [1.0, 2.5, 3000.0], "none": []}
    with answering("error no such command: x") as process, pytest.raises(results.Failed, match="stock was told 'x' and said: no such"):
        process.ask("x")
    with answering("ns=1,2") as process, pytest.raises(results.Failed, match="2 numbers called ns"):
        process.number("pairs 1")
    ends = harness.Process("stock", [sys.executable, "-c", "import sys; input(); sys.exit('no GPU')"], {})
    with ends as process, pytest.raises(results.Failed, match="ended with status 1 when told: pairs 1\nno GPU"):
        process.ask("pairs 1")


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


def test_only_the_fork_has_its_settings_and_documents_explain_each():
    page = (ROOT / "docs/bench.md").read_text()
    for name in harness.SUBJECTS:
        assert any(it.startswith("BUDDY_") for it in harness.settings(name, True)) == harness.is_fork(name)
        assert f"\n| {name} |" in page or f"(`{name}`) |" in page, name
    assert harness.settings("stock", False) == harness.settings("pinbuddy", False) == {}
    assert "pinned_use_cuda_host_register" in harness.settings("stock-tuned", False)["PYTORCH_ALLOC_CONF"]


def test_worst_programs_have_a_file_a_judgement_and_a_reason():
    first_cells = [line.split("|")[1] for line in (ROOT / "docs/bench.md").read_text().splitlines() if line.startswith("| `")]
    for name in worst.NAMES:
        assert any(f"`{name}`" in it for it in first_cells), name
    for name, (command, judged) in worst.PROGRAMS.items():
        assert (worst.SCRIPTS / f"{command.split()[0]}.py").is_file() and judged, name
        if name in worst.ALONE:
            assert all(it.how == "ours" for it in judged), "it cannot be compared with stock"


def test_a_round_is_judged_against_its_own(monkeypatch, tmp_path):
    machine = harness.Machine(tmp_path, tmp_path, tmp_path, {}, True, tmp_path, rounds=2)
    figures = {False: iter([{"seconds": 0.4, "slowest": 0.02}, {"seconds": 0.8, "slowest": 0.02}]),
               True: iter([{"seconds": 0.8, "slowest": 0.05}, {"seconds": 0.8, "slowest": 2.25}])}
    order = []
    monkeypatch.setattr(worst, "script", lambda machine, name, fork: order.append(fork) or next(figures[fork]))
    seen, rows, details = results.Results(), [], {}
    worst.in_rounds(machine, "captures", seen, rows, details)
    assert order == [False, True, True, False]
    assert [(it.path, it.value, it.spread) for it in seen.figures] == [
        (("worst", "captures", "seconds_ratio"), 1.5, (1.0, 2.0)), (("worst", "captures", "slowest_over_allowed"), 23.0, (1.0, 45.0))]
    assert details == {"worst/captures": {"stock": {"seconds": 0.6, "slowest": 0.02}, "fork": {"seconds": 0.8, "slowest": 1.15}}}
    # Alone, it is as it is; stock takes no time, the fork has a hiccup; a count may be nought.
    assert worst.HOW["ours"](9.0, 1.1) == 1.1 and worst.HOW["allowed"](1e-5, 0.02) < 1 and worst.HOW["more"](0, 0) == 0


def test_what_programs_measure_becomes_figures(monkeypatch, tmp_path, capsys):
    """With what they measured in the committed run, the figures are those of the committed run."""
    run = json.loads((ROOT / "docs/results/2026-11-22-bench.json").read_text())
    told = run["context"]["details"]
    machine = harness.Machine(tmp_path, tmp_path, tmp_path, {}, True, tmp_path)
    for name in ("warm_up", "beside"):
        monkeypatch.setattr(scripts.cold_start, name, lambda fork, name=name: told["warm_up"][name])
    monkeypatch.setattr(scripts.measure, "overhead", lambda *pythons: {k: v for k, v in told["overhead"].items() if k != "context"})
    for name in ("clear", "fit", "step", "first"):
        monkeypatch.setattr(scripts.production, name, lambda *pythons, name=name: told["production"][name])
    seen = results.Results()
    for part in (scripts.warm_up, scripts.overhead, scripts.of_production):
        part(machine, seen)
    found = seen.json({})
    for key in ("warmup_speedup", "beside_warm_up", "import_ms_delta"):
        assert found[key] == run[key]
    assert [str(it.target) for it in seen.judged()][0] == ">= 3.0" and len(seen.judged()) == 4
    assert found["context"]["details"]["production"].keys() == {"clear", "fit", "step", "first"}
    assert "pages, transparent" in capsys.readouterr().out


def test_command_lines_of_scripts_and_documents_are_taken():
    files = [it for folder in ("ci", "ci/gpu", ".ci", ".github/workflows", "docs") for it in (ROOT / folder).iterdir() if it.is_file()]
    lines = [line for it in files for line in it.read_text(errors="replace").splitlines()]
    found = [it for line in lines for it in re.findall(r"^[^#]*?\bcargo xtask bench( [^|`#;)]*)", line) if "| `" not in line]
    assert len(found) > 5
    for words in found:
        bench.parser().parse_args(shlex.split(re.sub(r"\$\{?\w+\}?", "x", words)))


def test_a_wrong_part_is_refused_with_those_there_are(capsys):
    for wrong, known in (("nothing", "trainings"), ("worst/nothing", "worst/captures"), ("hit/8MiB", "trainings")):
        with pytest.raises(SystemExit):
            bench.parser().parse_args(["--only", wrong])
        assert known in capsys.readouterr().err
    chosen = bench.parser().parse_args(["--only", "hit,plan/kv-cache", "worst/captures"]).only
    assert chosen == [["hit", "plan/kv-cache"], ["worst/captures"]]


def test_what_a_gpu_run_measured_is_drawn_and_nothing_else():
    cost = {"cudaHostAlloc": {"median": 0.5}, "THP, 1": {"median": 0.2}, "THP, 8": {"median": 0.05}}
    sizes = {"256 MiB": {"stock": {"median": 50.0}}, "16 MiB": {"stock": {"median": 40.0}}}
    found = gpu_charts.charts({"measured": {
        "pins": {"s_per_gib": cost}, "bandwidth": {"gb_per_s": {"h2d": sizes}}, "transformer": {"first_steps_s": {"stock": [3.0, 1.0]}}}})
    assert [it["file"] for it in found] == ["pins", "bandwidth-h2d", "steps-transformer"]
    assert found[0]["series"] == {"THP": [[1, 0.2], [8, 0.05]], "stock": [[1, 0.5], [8, 0.5]]}
    assert found[1]["series"] == {"stock": [[16 << 20, 40.0], [256 << 20, 50.0]]}
    assert found[2]["series"] == {"stock": [[1, 3.0], [2, 1.0]]}
    assert gpu_charts.charts({"measured": {}}) == []


def test_the_model_of_the_proposal_is_a_buddy_system(tmp_path):
    program = tmp_path / "test"
    sources = [BENCH / "buddy_181094.cpp", BENCH / "buddy_181094_test.cpp"]
    subprocess.run(["g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", *sources, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
