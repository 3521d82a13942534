"""The seam alone, without the engine: what a pull request proposes to PyTorch (docs/upstream.md).

The pull request's own test passes, and so do PyTorch's tests with a CUDA backend on the patched header, preloaded in front of the
official wheel's. The results are kept for the pull request's text.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from compiled import HERE, OUT, compile, ensure_gtest
from outcomes import PASSED

PATCHES = HERE.parents[1] / "patches"
# A tree's own CUDA backend, and the line that a backend prints at the end of a program that it served.
BACKEND = "aten/src/ATen/cuda/CachingHostAllocator.cpp"
SERVED = "seam backend: served"


class Seam:
    """The patches of the newest release and of the pull request on the wheel's headers, a test and a backend compiled with them."""

    def __init__(self, upstream):
        ensure_gtest()
        versions = tomllib.loads((PATCHES / "versions.toml").read_text())
        # A pull request can only be made from the newest series.
        release = max(versions["release"], key=lambda it: [int(part) for part in it["version"].split(".")])
        self.torch, self.folder = upstream.torch(upstream.stock), OUT / "seam"
        folders = [PATCHES / release["series"], PATCHES / versions["pull_request"]]
        self.patches = [it / name for it in folders for name in (it / "series").read_text().split()]
        [test] = [it for it in self._patched() if it.endswith(".cpp")]
        first = [str(self.folder / "include")]
        self.test = compile(self.torch, self.folder / test, ["-DUSE_CUDA", "-lgtest_main", "-lgtest"], first=first)
        # Binds its own symbols, since the wheel's library has functions of the same names for another layout.
        flags = ["-DUSE_CUDA", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-Bsymbolic"]
        header, own = upstream.bench.tree / versions["header"], upstream.bench.tree / BACKEND
        self.backend = "a small CUDA backend of the test's"
        if own.is_file() and header.is_file() and hashlib.sha256(header.read_bytes()).hexdigest() == release["header_sha256"]:
            flags.append(f'-DPINBUDDY_TREE_BACKEND="{own}"')
            self.backend = "the tree's own CUDA backend"
        more = [own] if self.backend.startswith("the tree") else []
        self.library = compile(self.torch, HERE / "seam_backend.cpp", flags, ".so", first, more=more)

    def _patched(self) -> list[str]:
        """Applies the patches to the wheel's headers, in a folder for the front of the include path; the files that they add.
        Files that are neither in a wheel nor new are left out."""
        text = "".join(it.read_text() for it in self.patches)
        added = re.findall(r"^diff --git a/(\S+) b/\S+\nnew file mode", text, re.MULTILINE)
        paths = set(re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE))
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        inside = {path: path.removeprefix("aten/src/") for path in paths}
        absent = []
        for path in sorted(paths - set(added)):
            file = self.torch.folder / "include" / inside[path]
            if file.is_file():
                (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, self.folder / path)
            else:
                absent.append(f"--exclude={path}")
        for patch in self.patches:
            # As if no repository were around it: git would skip files outside the repository.
            environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(self.folder.parent), "GIT_CONFIG_GLOBAL": "/dev/null"}
            command = ["git", "-c", "core.whitespace=cr-at-eol", "apply", "-p1", "--whitespace=nowarn", *absent, str(patch)]
            done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"{patch.name} does not apply to torch {self.torch.version}'s headers:\n{done.stderr}"
        for path in paths:
            if path.endswith(".h") and (self.folder / path).is_file():
                to = self.folder / "include" / inside[path]
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.folder / path, to)
        return added


RESULTS = Path(OUT / "seam.json")


@pytest.fixture(scope="module")
def seam(upstream) -> Seam:
    RESULTS.unlink(missing_ok=True)
    return Seam(upstream)


@pytest.fixture(scope="module")
def own(upstream, seam) -> dict:
    """Outcomes of the test that the patches add."""
    return upstream.bench.cpp("the seam's own test", seam.test, []).outcomes


@pytest.fixture(scope="module")
def with_seam(upstream, seam):
    return upstream.run("stock with the seam", upstream.stock, LD_PRELOAD=str(seam.library))


def test_what_passes_with_stock_passes_on_the_seam(upstream, with_seam, pinned_test):
    stock, outcome = upstream.run("stock", upstream.stock)[pinned_test], with_seam[pinned_test]
    if stock != PASSED:
        pytest.skip(f"stock {stock}, on the seam {outcome}")
    assert outcome == PASSED


def test_the_added_test_passes_the_backend_serves_and_the_results_are_kept_for_the_pull_request(upstream, seam, own, with_seam):
    """`cargo xtask upstream-pr` writes them into its text, if they are of its patches."""
    stock, cpp = upstream.run("stock", upstream.stock), upstream.bench.cpp_tests()
    assert own and {test: it for test, it in own.items() if it != PASSED} == {}
    assert len(with_seam.parts) == 2 and all(SERVED in it.splitlines() for it in with_seam.parts), "in both languages"
    assert all(with_seam[test] == PASSED for test, outcome in stock.outcomes.items() if outcome == PASSED)
    python = [it for it in with_seam.outcomes if it not in cpp]

    def line(what: str, tests) -> str:
        return f"{what}: {sum(with_seam[it] == PASSED for it in tests)} of {len(tests)} passed"

    results = [
        f"host_allocator_subclass_test: {len(own)} of {len(own)} passed",
        line(f"cuda_caching_host_allocator_test, on {seam.backend}", cpp),
        line("test_cuda.py, pinned memory, on the same", python),
    ]
    where = "on this machine" if upstream.real else "in the simulator"
    hashes = {it.name: hashlib.sha256(it.read_bytes()).hexdigest() for it in seam.patches}
    kept = {"patches": hashes, "on": f"torch {seam.torch.version}, {where}", "results": results}
    RESULTS.write_text(json.dumps(kept, indent=2))
