"""Which torch the clients run with. pytest runs with the fork's interpreter, in the simulator (`cargo xtask sim`) or on a GPU:

    cargo xtask sim -- FORK -m pytest tests/clients --stock STOCK [--libraries FOLDER] [--plugin FOLDER]

`ci/clients.sh` makes all of that. FORK and STOCK are interpreters, as `cargo xtask venv` and `cargo xtask venv --stock` make them.
"""

import functools
import os
import sys
from pathlib import Path

import pytest
import runs
from runs import Way


def pytest_addoption(parser):
    parser.addoption("--stock", default=os.environ.get("PINBUDDY_STOCK_PYTHON"), metavar="PYTHON", help="the official wheel's interpreter")
    parser.addoption("--plugin", metavar="FOLDER", help="an unpacked wheel of the plug-in [default: the plug-in is not run]")
    parser.addoption("--libraries", metavar="FOLDER", help="what `pip install --target FOLDER --no-deps -r requirements.txt` leaves")


def pytest_configure(config):
    config.addinivalue_line("markers", "quick: needs torch alone, and is run by `cargo xtask test`")
    if not config.getoption("stock"):
        raise pytest.UsageError("no --stock; `cargo xtask venv --stock` makes an environment with the official wheel")


@pytest.fixture(scope="session")
def ways(pytestconfig) -> dict[str, Way]:
    """Stock first, then those that are compared with it."""
    stock, plugin, libraries = map(pytestconfig.getoption, ("stock", "plugin", "libraries"))
    more = (libraries,) if libraries else ()
    all = [Way("stock", stock, more), Way("fork", sys.executable, more)]
    if plugin:
        all.append(Way("plug-in", stock, (*more, plugin)))
    return {it.name: it for it in all}


@pytest.fixture(scope="session")
def run(pytestconfig, ways):
    """``run(client, "stock", SETTING=value)``; skips a client whose library is not there."""
    places = {str(Path(it.python).parent.parent): "ENVIRONMENT" for it in ways.values()}

    def run(client, way: str, **settings):
        if client.library and not pytestconfig.getoption("libraries"):
            pytest.skip(f"it needs {client.library}, and there is no --libraries")
        return runs.run(client, ways[way], places, **settings)

    return run


@pytest.fixture(scope="session")
def clean(run):
    """``clean(client)``: its run with stock and no fault, once."""
    return functools.cache(lambda client: run(client, "stock"))


def pytest_terminal_summary(terminalreporter):
    """A line for each client: seconds, and MiB pinned at most."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties if report.when == "call" else ():
            if name == "line":
                terminalreporter.write_line(value)
