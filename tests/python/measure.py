"""Compares the fork with the official wheel in one run: interleaved processes, medians, ratios.

Times are of one machine at one time; the ratios are the result. Used by timing tests and by `cargo xtask bench --only overhead`.
"""

import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import native

BENCH = Path(__file__).parent.parent / "bench"
sys.path.append(str(BENCH))
from harness import Case, Process, in_turns, medians, ratios, requests  # noqa: E402
from harness import measure as in_rounds  # noqa: E402


def torch_folder(python: str) -> Path:
    program = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    return Path(subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip())


def environment(**variables) -> dict[str, str]:
    """This process's environment, with no BUDDY_ variable but those given, and no site's file of this machine."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BUDDY_")} | {"PINBUDDY_SITE": ""}
    return kept | {name: str(value) for name, value in variables.items()}


def run(python: str, program: str, **settings: str):
    """The program's answer, in its own process with only these settings."""
    command = [python, "-c", "from program import *\n" + program]
    done = subprocess.run(command, cwd=Path(__file__).parent, env=environment(**settings), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{python} exited with {done.returncode}:\n{done.stderr}")
    (value,) = json.loads(done.stdout.splitlines()[-1])
    return value


def pairs_of(stock: Path, torch: Path, name: str = "fork", **variables) -> Process:
    """The benchmark's harness with stock's libtorch or the fork's, on one core."""
    libraries = ":".join(filter(None, [str(torch / "lib"), os.environ.get("LD_LIBRARY_PATH")]))
    # Compiled once, against the official wheel; runs with either.
    program = native.program(BENCH, stock, "-O2")
    return Process(name, [str(program)], environment(LD_LIBRARY_PATH=libraries, **variables)).pin_to_one_core()


def compare_pairs(stock: Path, fork: Path, size: int, live: int = 1, processes: int = 7, **variables) -> dict:
    """Fork over stock for one size and so many live blocks: the median ratio of neighbouring turns.

    A turn takes about a millisecond and both run on one core, so that a disturbance meets both or
    few; several pairs of processes, because where things lie in memory is drawn once for each.
    """
    pairs = 10_000

    def start() -> list[Process]:
        return [pairs_of(stock, stock, "stock"), pairs_of(stock, fork, "fork", **variables)]

    pattern = str(size) if live == 1 else f"{live}x{size}"
    case = Case("pairs", f"pairs {pairs}", requests(pattern, 10 * pairs))
    seen = in_rounds(SimpleNamespace(say=lambda text: None), start, [case], processes, turns=60)["pairs"]
    found = ratios(seen, "fork")
    return {
        "ratio": statistics.median(found), "ratio_spread": [min(found), max(found)], "ratios": found,
        "stock_ns": statistics.median(medians(seen, "stock")), "fork_ns": statistics.median(medians(seen, "fork")),
    }


IMPORT = ["-c", "import torch"]
TURNS = 10


def compare_imports(stock: str, fork: str) -> dict:
    """How much longer `import torch` takes with the fork: the median difference of ten turns, in ms.

    An import takes a second or two, give or take 40 ms; `compare_loading` sees what is ours in that.
    """

    def milliseconds(python: str) -> float:
        start = time.perf_counter()
        subprocess.run([python, *IMPORT], check=True)
        return (time.perf_counter() - start) * 1e3

    return _compare_in_turns(milliseconds, stock, fork)


def compare_import_work(stock: str, fork: str) -> dict:
    """The same in processor time, which does not vary with slow disks. The fork adds only processor work: a
    library to map and relocate. Both run at the same time, so that what disturbs one disturbs the other."""

    def pair(turn: int) -> dict[str, float]:
        order, spent = (stock, fork) if turn % 2 == 0 else (fork, stock), {}
        for python, process in [(it, subprocess.Popen([it, *IMPORT])) for it in order]:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, process.args)
            spent[python] = (usage.ru_utime + usage.ru_stime) * 1e3
        return spent

    pair(0)
    pairs = [pair(turn) for turn in range(TURNS)]
    return _differences([it[stock] for it in pairs], [it[fork] for it in pairs])


LOADING = """
import ctypes, sys, time
ctypes.CDLL(sys.argv[1] + "/libtorch_cuda.so")
start = time.perf_counter()
ctypes.CDLL(sys.argv[1] + "/libtorch.so")
print((time.perf_counter() - start) * 1e3)
"""


def compare_loading(stock: str, fork: str) -> dict:
    """How much longer libtorch.so takes to load with our library, in ms: the fork's share of `import torch`,
    without the noise of the rest."""

    def milliseconds(python: str) -> float:
        command = [python, "-c", LOADING, str(torch_folder(python) / "lib")]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return _compare_in_turns(milliseconds, stock, fork)


def _compare_in_turns(milliseconds, stock: str, fork: str) -> dict:
    """One after the other, once more than is counted: the first fills the system's caches."""
    for python in (stock, fork):
        milliseconds(python)
    return _differences(*in_turns([stock, fork], TURNS, milliseconds))


def _differences(stock_ms: list[float], fork_ms: list[float]) -> dict:
    differences = [ours - theirs for ours, theirs in zip(fork_ms, stock_ms)]
    return {
        "delta_ms": statistics.median(differences), "stock_ms": statistics.median(stock_ms),
        "spread_ms": [min(differences), max(differences)], "deltas_ms": differences,
    }


def at_least(samples: list[float]) -> float:
    """A lower bound of the samples' median, at a confidence of 95 %.

    The sign test's: of n samples fewer than k are below the median with the chance that n throws of a coin give
    fewer than k heads. The bound is the k-th smallest sample, for the largest k with a chance of 5 % or less. It
    assumes nothing of how the noise is distributed. Fewer than five samples have no such bound.
    """
    n = len(samples)
    chances = itertools.accumulate(math.comb(n, heads) / 2**n for heads in range(n))
    k = sum(chance <= 0.05 for chance in chances)
    if k == 0:
        raise ValueError(f"{n} samples are too few for a bound")
    return sorted(samples)[k - 1]
