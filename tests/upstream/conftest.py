"""Which torch PyTorch's own tests run with: pytest runs with the fork's interpreter, in the simulator (`cargo xtask sim`) or on a GPU.

`cargo xtask test --only PyTorch` makes all that is needed. By hand, with interpreters of `cargo xtask venv`:

    cargo xtask sim -- FORK -m pytest tests/upstream --stock STOCK [--source DIR]

The interpreters need expecttest, hypothesis, numpy and psutil, or --packages a folder with them.
"""

import ast
import os
import sys
import tomllib
from pathlib import Path

import compiled
import pytest
import sources
from outcomes import Bench, Choice, Pinned

DEVICE = tomllib.loads((compiled.HERE / "device.toml").read_text())


def pytest_addoption(parser):
    parser.addoption("--stock", default=os.environ.get("PINBUDDY_STOCK_PYTHON"), metavar="PYTHON", help="the official wheel's interpreter")
    parser.addoption("--source", metavar="DIR", help="a PyTorch tree to take the tests from [default: Debian's 2.6.0 source package]")
    parser.addoption("--real", action="store_true", help="on this machine's GPU: also tests of graphs and copies, and what stock fails is no failure")
    parser.addoption("--packages", default="", metavar="DIR", help="what test_cuda.py imports besides torch, as pip --target leaves it")
    parser.addoption("--include", default="", metavar="DIRS", help="folders of CUDA's headers besides those that came with torch")


class Upstream:
    """What a session tests with."""

    def __init__(self, config):
        option = config.getoption
        if not option("stock"):
            raise pytest.UsageError("no --stock; `cargo xtask venv --stock` makes an environment with the official wheel")
        self.stock, self.fork = option("stock"), sys.executable
        self.real, self.named = option("real"), option("source") is not None
        try:
            tree = Path(option("source") or sources.ensure()).resolve()
        except sources.Missing as missing:
            raise pytest.UsageError(str(missing)) from missing
        for file in (compiled.CPP_TEST, compiled.PYTHON_TEST):
            if not (tree / file).is_file():
                raise pytest.UsageError(f"{tree} is not a PyTorch source tree: it has no {file}; leave --source out to use Debian's 2.6.0")
        self.bench = Bench(tree, 3600 if self.real else 600, option("packages"))
        self.known = compiled.pinned()
        self.pinned = Pinned(self.bench, Choice(tuple(self.known["gpu" if self.real else "pinned"])))
        without = tuple(it for entry in DEVICE["left-out"] for it in entry["tests"])
        self.device = Choice(tuple(DEVICE["patterns"]), tuple(DEVICE["last"]), without)
        self._include = list(filter(None, option("include").split(os.pathsep)))
        self._torches = {}

    def torch(self, python: str) -> compiled.Torch:
        if python not in self._torches:
            torch = self._torches[python] = compiled.Torch.of(python, self._include)
            # Without one, PyTorch's C++ tests would pass by doing nothing.
            assert torch.sees_gpu, f"{python} sees no GPU; `cargo xtask sim -- COMMAND` has a simulated one"
        return self._torches[python]

    def run(self, title: str, python: str, **settings: str):
        """The tests of pinned memory in a configuration."""
        return self.pinned.run(title, python, self.torch(python), tuple(settings.items()))


UPSTREAM = pytest.StashKey[Upstream]()


def upstream_of(config) -> Upstream:
    if UPSTREAM not in config.stash:
        config.stash[UPSTREAM] = Upstream(config)
    return config.stash[UPSTREAM]


@pytest.fixture(scope="session")
def upstream(pytestconfig) -> Upstream:
    return upstream_of(pytestconfig)


def pytest_generate_tests(metafunc):
    """`pinned_test` and `device_test` are each of the tests, by stock's interpreter."""
    for name, cpp in (("pinned_test", True), ("device_test", False)):
        if name in metafunc.fixturenames:
            it = upstream_of(metafunc.config)
            names = it.bench.listed(it.stock, it.pinned.choice if cpp else it.device)
            metafunc.parametrize(name, (it.bench.cpp_tests() if cpp else []) + names)


def named_in_source(tree: Path, choice: Choice) -> set[str]:
    """`Class.test` of each test that test_cuda.py's text has for a choice's patterns; of parametrized ones the beginning."""
    classes = [it for it in ast.parse((tree / compiled.PYTHON_TEST).read_text()).body if isinstance(it, ast.ClassDef)]
    names = [f"{it.name}.{test.name}" for it in classes for test in it.body if isinstance(test, ast.FunctionDef) and test.name.startswith("test_")]
    return {it for it in names if choice.names(it)}
