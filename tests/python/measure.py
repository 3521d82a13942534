"""Compares the fork with the official wheel in one run: interleaved processes, medians, ratios.

usage: measure.py STOCK_PYTHON FORK_PYTHON [--json FILE]   (in the simulator: cargo xtask sim -- ...)

Times are of one machine at one time; the ratios are the result. Used by `test_overhead.py` and by
people.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

MIB = 1 << 20
SOURCE = Path(__file__).parent.parent / "bench" / "allocate_free.cpp"


def torch_folder(python: str) -> Path:
    program = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def context(stock: str, fork: str) -> dict:
    """The machine and the versions that figures belong to."""
    versions = [
        subprocess.run(
            [python, "-c", "import torch; print(torch.__version__)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for python in (stock, fork)
    ]
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((it.split(":", 1)[1].strip() for it in lines if it.startswith("model name")), "")
    return {
        "date": datetime.date.today().isoformat(),
        "processor": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "simulated": "libpinbuddy_cuda_sim" in os.environ.get("LD_PRELOAD", ""),
        "stock": versions[0],
        "fork": versions[1],
    }


def compile_pairs(stock: Path, out: Path) -> Path:
    """Compiles the pair benchmark once, against the official wheel; it runs with either."""
    program = out / "allocate_free"
    command = ["g++", "-std=c++20", "-O2", "-w", str(SOURCE), "-o", str(program)]
    command += [f"-I{stock}/include", f"-L{stock}/lib", "-Wl,--no-as-needed"]
    command += ["-ltorch", "-ltorch_cpu", "-lc10", "-Wl,--allow-shlib-undefined"]
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD",)}
    subprocess.run(command, check=True, env=environment)
    return program


def pair_ns(program: Path, torch: Path, size: int, pairs: int, rounds: int, **variables) -> float:
    """The median of `rounds` rounds of one process, in nanoseconds a pair."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BUDDY_")}
    paths = [str(torch / "lib"), environment.get("LD_LIBRARY_PATH", "")]
    environment["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
    environment |= {name: str(value) for name, value in variables.items()}
    command = [str(program), str(size), str(pairs), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return statistics.median(float(it) for it in done.stdout.split())


def compare_pairs(stock: Path, fork: Path, size: int, processes: int = 9, **variables) -> dict:
    """Fork over stock for one size: the ratio of the medians over interleaved processes."""
    with tempfile.TemporaryDirectory() as folder:
        program = compile_pairs(stock, Path(folder))
        times = {"stock": [], "fork": []}
        for turn in range(processes):
            # Whoever goes first goes second the next time.
            order = ["stock", "fork"] if turn % 2 == 0 else ["fork", "stock"]
            for which in order:
                torch, extra = (stock, {}) if which == "stock" else (fork, variables)
                times[which].append(pair_ns(program, torch, size, 200_000, 5, **extra))
    medians = {which: statistics.median(values) for which, values in times.items()}
    return {
        "ratio": medians["fork"] / medians["stock"],
        "stock_ns": medians["stock"],
        "fork_ns": medians["fork"],
        "spread": {which: max(values) / min(values) for which, values in times.items()},
    }


def compare_imports(stock: str, fork: str, processes: int = 10) -> dict:
    """How much longer `import torch` takes in the fork: the median difference of pairs, in ms.

    An import takes two seconds, give or take a tenth; `compare_loading` sees what is ours in that.
    """
    command = ["-c", "import torch"]

    def milliseconds(python: str) -> float:
        start = time.perf_counter()
        subprocess.run([python, *command], check=True)
        return (time.perf_counter() - start) * 1e3

    return _compare_pairwise(milliseconds, stock, fork, processes)


LOADING = """
import ctypes, sys, time
ctypes.CDLL(sys.argv[1] + "/libtorch_cuda.so")
start = time.perf_counter()
ctypes.CDLL(sys.argv[1] + "/libtorch.so")
print((time.perf_counter() - start) * 1e3)
"""


def compare_loading(stock: str, fork: str, processes: int = 10) -> dict:
    """How much longer libtorch.so takes to load with our library in it, in ms: what the fork adds
    to `import torch`, without the noise of all the rest."""

    def milliseconds(python: str) -> float:
        command = [python, "-c", LOADING, str(torch_folder(python) / "lib")]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return _compare_pairwise(milliseconds, stock, fork, processes)


def _compare_pairwise(milliseconds, stock: str, fork: str, processes: int) -> dict:
    times = {stock: [], fork: []}
    for python in (stock, fork):
        milliseconds(python)
    for turn in range(processes):
        for python in (stock, fork) if turn % 2 == 0 else (fork, stock):
            times[python].append(milliseconds(python))
    differences = [ours - theirs for ours, theirs in zip(times[fork], times[stock])]
    return {
        "delta_ms": statistics.median(differences),
        "stock_ms": statistics.median(times[stock]),
        "spread_ms": [min(differences), max(differences)],
    }


def arguments(description: str) -> argparse.Namespace:
    """The command line of this program and of `effect.py`."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("stock", metavar="STOCK_PYTHON")
    parser.add_argument("fork", metavar="FORK_PYTHON")
    parser.add_argument("--json", metavar="FILE", type=Path)
    return parser.parse_args()


def save(options: argparse.Namespace, results: dict) -> None:
    """Writes the results with their context where `--json` asks for it."""
    if options.json:
        results = {"context": context(options.stock, options.fork)} | results
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def main() -> None:
    options = arguments(__doc__)
    stock, fork = torch_folder(options.stock), torch_folder(options.fork)
    small = {"BUDDY_BLOCK_SIZE_MB": 256, "BUDDY_BLOCK_COUNT": 1}
    results = {
        "below_threshold_64KiB": compare_pairs(stock, fork, 64 << 10, **small),
        "below_threshold_1MiB": compare_pairs(stock, fork, MIB, **small),
        "disabled_64KiB": compare_pairs(stock, fork, 64 << 10, BUDDY_DISABLE=1),
        "disabled_64MiB": compare_pairs(stock, fork, 64 * MIB, BUDDY_DISABLE=1),
        "engine_8MiB": compare_pairs(stock, fork, 8 * MIB, **small),
        "engine_64MiB": compare_pairs(stock, fork, 64 * MIB, **small),
        "import": compare_imports(options.stock, options.fork),
        "loading": compare_loading(options.stock, options.fork),
    }
    print(f"{'allocate + free':24} {'stock ns':>9} {'fork ns':>9} {'ratio':>7}")
    for name, it in results.items():
        if "ratio" in it:
            print(f"{name:24} {it['stock_ns']:9.1f} {it['fork_ns']:9.1f} {it['ratio']:7.3f}")
    for name in ("import", "loading"):
        it = results[name]
        low, high = it["spread_ms"]
        print(f"{name:24} {it['stock_ms']:9.1f} ms, fork {it['delta_ms']:+.2f} ({low:+.1f} to {high:+.1f})")
    save(options, results)


if __name__ == "__main__":
    main()
