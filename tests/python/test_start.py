"""A forked program starts as ``python -c`` does; a run with `--all` starts each for real, and finds what forking would hide."""

import json
import os

import conftest
import pytest
from conftest import ALLOC_CONF, interpreter
from measure import environment
from release import from_minor
from start import start

SETTINGS = {"BUDDY_MAX_MB": "7", "PINBUDDY_SIM_DEVICES": "2", "PYTHONPATH": "/nowhere:/else"}


def both(program: str, **variables: str) -> list:
    """What becomes of it, started for real and forked."""
    conftest.skip_on_a_real_gpu(variables, program)
    return [start(interpreter("stock"), program, environment(**variables), 60, forked) for forked in (False, True)]


def test_it_finds_what_it_would_after_a_real_start():
    program = """
import ctypes, json, os, sys
import __main__
def here(): pass
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
there = ["torch" in sys.modules, "pinbuddy" in sys.modules]
import torch.nn
facts = {
    "arguments": sys.argv, "main": [__name__, __main__.here is here, sorted(it for it in vars() if it[:2] == "__")],
    "torch": [there, torch.__spec__.origin, torch.nn.Module.__module__, sys.modules["torch"] is torch],
    "folder": os.getcwd(), "path": sys.path, "input": sys.stdin.read(),
    "settings": [os.environ["BUDDY_MAX_MB"], libc.getenv(b"BUDDY_MAX_MB").decode(), libc.getenv(b"BUDDY_OTHER")],
    "environment": sorted(os.environ.items()),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "devices": torch.cuda.device_count(),
    "works": [torch.zeros(3, device="cuda").sum().item(), torch.ones(1 << 20).sum().item()],
    "loader": str(__loader__), "terminal": [it.isatty() for it in (sys.stdin, sys.stdout, sys.stderr)],
}
print(json.dumps(facts))
"""
    real, forked = both(program, **SETTINGS)
    assert forked.stderr == real.stderr
    assert json.loads(forked.stdout) == json.loads(real.stdout)
    assert json.loads(real.stdout)["settings"] == ["7", "7", None] and json.loads(real.stdout)["devices"] == 2


def test_pytorchs_allocators_read_their_settings_at_their_first_request():
    """Or an environment that comes after the import would be none to them: each changes what both kinds of memory do."""
    name = ALLOC_CONF if from_minor(10) else "PYTORCH_CUDA_ALLOC_CONF"
    settings = {name: "expandable_segments:True,max_split_size_mb:21,pinned_use_cuda_host_register:True"}
    program = """
from program import *
before = pinned(3)
torch.empty(3 << 20, device="cuda")
snapshot = torch.cuda.memory._snapshot()
shown = {name: it for name, it in snapshot["allocator_settings"].items() if name != "PYTORCH_CUDA_ALLOC_CONF"}
answer(shown, [it["is_expandable"] for it in snapshot["segments"]], sim()["host_registers"], sim()["host_allocs"])
"""
    real, forked = both(program, **settings)
    assert (forked.returncode, forked.stdout) == (real.returncode, real.stdout), forked.stderr
    shown, expandable, registers, allocs = json.loads(real.stdout)
    assert shown["expandable_segments"] and shown["max_split_size"] == 21 << 20
    assert expandable == [True] and registers > 0 == allocs


@pytest.mark.parametrize("name, value", [("PYTORCH_ALLOC_CONF", "backend:native"), ("LD_PRELOAD", "")])
def test_what_is_read_while_torch_is_imported_needs_a_real_start(name, value):
    stock, program = interpreter("stock"), "import os; print(os.getppid())"
    assert start(stock, program, environment(**{name: value}), 60, True).stdout == f"{os.getpid()}\n"
    assert int(start(stock, program, environment(), 60, True).stdout) != os.getpid()


def test_what_only_the_simulator_does_is_skipped_on_a_real_gpu(monkeypatch):
    monkeypatch.setattr(conftest, "REAL", True)
    conftest.skip_on_a_real_gpu({"PINBUDDY_SIM_LOCK": 0, "PINBUDDY_SIM_QUIET": 1, "PINBUDDY_SIM_MEMORY": "", "BUDDY_MAX_MB": 7})
    for variables, program in [({"PINBUDDY_SIM_DEVICE_MB": "64"}, ""), ({"PINBUDDY_SIM_DEVICES": 0}, ""), ({}, "print(sim())")]:
        with pytest.raises(pytest.skip.Exception):
            conftest.skip_on_a_real_gpu(variables, program)
