"""Compiles C++ against the torch of an interpreter: PyTorch's allocator test, and what stands in front of it.

As a program: `compiled.py --stock PYTHON [--source DIR] [--include DIR:DIR] OUT` writes what a machine with a GPU and no compiler needs
(ci/gpu/pack.sh): OUT/bin/cuda_caching_host_allocator_test with no folder of this machine in it, OUT/pytorch/test_cuda.py and
patterns.json.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import sources

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "target/upstream"
CPP_TEST = "aten/src/ATen/test/cuda_caching_host_allocator_test.cpp"
PYTHON_TEST = "test/test_cuda.py"
NAME = "cuda_caching_host_allocator_test"
# Debian's package with GoogleTest.
GTEST = "libgtest-dev"
# Asks torch, with no allocator of ours.
PROBE = """
import glob, json, pathlib, torch
folder = pathlib.Path(torch.__file__).parent
nvidia = str(folder.parent / "nvidia" / "*")
runtimes = glob.glob(f"{nvidia}/lib/libcudart.so.{(torch.version.cuda or '').split('.')[0]}")
print(json.dumps([torch.__version__, str(folder), sorted(glob.glob(f"{nvidia}/include")), runtimes[0], torch.cuda.is_available()]))
"""


@dataclass(frozen=True)
class Torch:
    """A torch to compile against."""

    version: str
    folder: Path
    # The folders of CUDA's headers.
    include: tuple[str, ...]
    # libcudart.so.
    runtime: str
    sees_gpu: bool

    @classmethod
    def of(cls, python: str, include: list[str]) -> "Torch":
        environment = os.environ | {"BUDDY_DISABLE": "1"}
        done = subprocess.run([python, "-c", PROBE], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{python} has no torch with CUDA that could be asked:\n{done.stderr}")
        version, folder, own, runtime, sees_gpu = json.loads(done.stdout.splitlines()[-1])
        return cls(version, Path(folder), (*own, *include), runtime, sees_gpu)


def ensure_gtest() -> None:
    """GoogleTest, installed if it is missing and this is root."""

    def is_there() -> bool:
        probe = ["g++", "-E", "-x", "c++", "-"]
        return subprocess.run(probe, input="#include <gtest/gtest.h>\n", text=True, capture_output=True).returncode == 0

    if not is_there() and os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", GTEST]
        # A fresh machine has no package lists.
        for command in (install, ["apt-get", "update", "-q"], install):
            subprocess.run(command, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, capture_output=True)
            if is_there():
                break
    if not is_there():
        raise RuntimeError(
            f"GoogleTest is missing\n  found     no gtest/gtest.h that g++ can see\n  expected  the package {GTEST}\n"
            f"  to do     sudo apt-get install {GTEST} (or dnf install gtest-devel)"
        )


def compile(torch: Torch, source: Path, flags: list[str], ending: str = "", first: list[str] = (), fixed: bool = True, more: list[Path] = ()) -> Path:
    """The program or library of a source, compiled unless it is current. `first` are header folders before all others, `more` files
    that it includes; without `fixed` no folder of this machine is in it."""
    lib, runtime = torch.folder / "lib", Path(torch.runtime)
    include = [torch.folder / "include", torch.folder / "include/torch/csrc/api/include", *torch.include]
    command = ["g++", "-std=c++20", "-O1", "-w", *(f"-I{it}" for it in first)]
    command += [part for it in include for part in ("-isystem", str(it))]
    # All libraries are linked: no symbol of the test refers to libtorch_cuda.so, but CUDA needs it to be loaded.
    command += [str(source), f"-L{lib}", "-Wl,--no-as-needed", "-ltorch", "-ltorch_cuda", "-ltorch_cpu", "-lc10_cuda", "-lc10", str(runtime)]
    command += [*flags, "-pthread", *(f"-Wl,{'-rpath' if fixed else '-rpath-link'},{it}" for it in (lib, runtime.parent))]
    # What differs between forks and releases, and what is included by name.
    read = [source, torch.folder / "version.py", torch.folder / "include/ATen/core/CachingHostAllocator.h", HERE / "report_served.h", *more]
    for folder in first:
        read += sorted(it for it in Path(folder).rglob("*.h"))
    digest = hashlib.sha256(repr(command).encode() + b"".join(it.read_bytes() for it in read)).hexdigest()
    out = OUT / f"{source.stem}-{digest[:12]}{ending}"
    if not out.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        part = out.with_suffix(f".{os.getpid()}")
        done = subprocess.run([*command, "-o", str(part)], capture_output=True, text=True)
        if done.returncode != 0:
            errors = "\n".join([line for line in done.stderr.splitlines() if "error" in line][:8])
            raise RuntimeError(
                f"{source} does not compile against torch {torch.version}\n  found     {errors}\n"
                "  expected  a source that fits that release\n  to do     pass --source a PyTorch tree of that release"
            )
        part.rename(out)
    return out


def allocator_test(torch: Torch, tree: Path, fixed: bool = True) -> Path:
    """PyTorch's C++ test, unchanged; it says at its end what the engine served."""
    ensure_gtest()
    return compile(torch, tree / CPP_TEST, ["-include", str(HERE / "report_served.h"), "-lgtest"], fixed=fixed)


def pinned() -> dict:
    return tomllib.loads((HERE / "pinned.toml").read_text())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stock", required=True)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--include", default="")
    parser.add_argument("out", type=Path)
    asked = parser.parse_args()
    tree = asked.source or sources.ensure()
    torch = Torch.of(asked.stock, list(filter(None, asked.include.split(os.pathsep))))
    for folder in ("bin", "pytorch"):
        (asked.out / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy2(allocator_test(torch, tree, fixed=False), asked.out / "bin" / NAME)
    shutil.copy2(tree / PYTHON_TEST, asked.out / "pytorch/test_cuda.py")
    patterns = {it: pinned()[it] for it in ("pinned", "gpu")}
    (asked.out / "pytorch/patterns.json").write_text(json.dumps(patterns) + "\n")


if __name__ == "__main__":
    main()
