"""The CMake part of a source build: patches/source applied to this stand-in for PyTorch's tree, with the libraries of an official
wheel. CMake really builds and links our library. `cargo xtask test --all` starts it, and says where what it needs is.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORK = ROOT / "target/source-cmake"
OURS, LINKED = "libtorch_pinbuddy.so", "libtorch_cuda.so"
# A wheel, unpacked; its headers after the series; folders of CUDA's headers; the fork's version; folder of CMake and ninja.
NEEDED = json.loads(os.environ["PINBUDDY_SOURCE_BUILD"])


def run(*words) -> None:
    hidden = {"USE_PINBUDDY", "CXXFLAGS", "RUSTFLAGS", "CARGO_TARGET_DIR"}
    environment = {name: it for name, it in os.environ.items() if name not in hidden}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def dynamic(library: Path) -> str:
    """What a library needs, and its own name."""
    return subprocess.run(["readelf", "--dynamic", library], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def tree() -> Path:
    """The patched stand-in; unchanged files keep their time."""
    tree = WORK / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(HERE, tree, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for name in (ROOT / "patches/source/series").read_text().split():
        words = ["git", "apply", "-p1", str(ROOT / "patches/source" / name)]
        subprocess.run(words, cwd=tree, env=os.environ | {"GIT_CEILING_DIRECTORIES": str(WORK)}, check=True)
    return tree


def install(tree: Path, ours: bool) -> Path:
    """Configures, builds and installs it; returns the folder of its libraries."""
    build = WORK / ("with" if ours else "without")
    (*_, cudart) = sorted(Path(NEEDED["cuda"][0]).with_name("lib").glob("libcudart.so.*"))
    defined = {
        "WHEEL": f"{NEEDED['wheel']}/torch",
        "OVERLAY": f"{NEEDED['overlay']}/torch/include",
        "CUDA_INCLUDE": ";".join(NEEDED["cuda"]),
        "CUDART": cudart,
        "USE_PINBUDDY": "ON" if ours else "OFF",
        "PINBUDDY_ROOT": ROOT,
        "PINBUDDY_FORK_VERSION": NEEDED["version"],
        "CMAKE_INSTALL_PREFIX": build / "installed",
        "CMAKE_MAKE_PROGRAM": f"{NEEDED['tools']}/bin/ninja",
    }
    cmake = f"{NEEDED['tools']}/cmake/data/bin/cmake"
    run(cmake, "-S", tree, "-B", build, "-G", "Ninja", *(f"-D{name}={it}" for name, it in defined.items()))
    run(cmake, "--build", build)
    run(cmake, "--install", build)
    return build / "installed/lib"


def test_without_the_option_it_is_stock_s(tree):
    lib = install(tree, ours=False)
    assert (lib / LINKED).exists() and OURS not in dynamic(lib / LINKED)
    assert not (lib / OURS).exists()


def test_with_it_our_library_is_loaded_under_its_name_and_links_nothing_back(tree):
    lib = install(tree, ours=True)
    assert f"Shared library: [{OURS}]" in dynamic(lib / LINKED)
    ours = dynamic(lib / OURS)
    assert f"soname: [{OURS}]" in ours
    assert LINKED not in ours


def test_where_nothing_has_changed_nothing_is_linked_anew(tree):
    install(tree, ours=True)
    linked = WORK / "with/lib" / LINKED
    before = linked.stat().st_mtime_ns
    install(tree, ours=True)
    assert linked.stat().st_mtime_ns == before
