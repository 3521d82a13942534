"""Compiles the harness once against the official wheel; it runs with either libtorch, and has no path of one.

usage: build.py TORCH OUT [--once]      (TORCH: the folder of the package; --once: leave no stamp)

Invariant: OUT is beside a stamp of its sources and its wheel, and is compiled anew where they differ.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
FLAGS = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Wno-interference-size"]
# No symbol refers to libtorch_cuda.so, but CUDA needs it to be loaded.
LIBRARIES = ["-Wl,--no-as-needed", "-ltorch", "-ltorch_cuda", "-ltorch_cpu", "-lc10", "-Wl,--allow-shlib-undefined", "-pthread", "-ldl"]


def build(torch: Path, out: Path, once: bool) -> None:
    files = sorted(HERE.glob("*.cpp")) + sorted(HERE.glob("*.h")) + [torch / "version.py"]
    stamp = f"{torch}\n" + "".join(f"{hashlib.sha256(it.read_bytes()).hexdigest()} {it}\n" for it in files)
    stamped = out.with_suffix(".stamp")
    if out.exists() and stamped.exists() and stamped.read_text() == stamp:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    stamped.unlink(missing_ok=True)
    print("compiling the harness", file=sys.stderr)
    sources = [it for it in files if it.suffix == ".cpp" and not it.stem.endswith("_test")]
    include = torch / "include"
    with tempfile.TemporaryDirectory(dir=out.parent) as work:

        def compile_one(source: Path) -> str:
            to = f"{work}/{source.stem}.o"
            gcc(*FLAGS, "-isystem", include, "-isystem", include / "torch/csrc/api/include", "-c", source, "-o", to)
            return to

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            objects = list(pool.map(compile_one, sources))
        gcc(*objects, "-o", f"{work}/harness", f"-L{torch / 'lib'}", *LIBRARIES)
        os.replace(f"{work}/harness", out)
    if not once:
        stamped.write_text(stamp)


def gcc(*arguments) -> None:
    done = subprocess.run(["g++", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(
            f"the harness of the benchmarks does not compile\n  found     {done.stderr.strip()}\n"
            "  expected  tests/bench to fit the official wheel's headers\n  to do     install what is named above, then run it again")


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]), "--once" in sys.argv)
