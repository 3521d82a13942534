"""A forked program starts and ends as ``python -c`` does."""

import json
import os
import signal
import subprocess

import conftest
import pytest
from conftest import ALLOC_CONF, interpreter
from measure import environment
from release import from_minor
from start import Zygote, start, tells_words

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


def test_settings_that_a_program_makes_before_it_imports_torch_count(run):
    program = """
    import json, os
    os.environ["BUDDY_MAX_MB"] = "77"
    import torch, pinbuddy
    print(json.dumps(pinbuddy.config()["BUDDY_MAX_MB"]["value"]))
    """
    assert run(program, BUDDY_MAX_MB=66).value == 77


@pytest.mark.parametrize("ending, status", [
    ("pass", 0),
    ("sys.exit(3)", 3),
    ("sys.exit('why')", 1),
    ("os._exit(4)", 4),
    ("raise ValueError('broke')", 1),
    ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
    # 120 where Python buffers what it prints, and 0 with PYTHONUNBUFFERED.
    ("os.close(1); os.close(2)", None),
])
def test_it_ends_as_after_a_real_start(ending, status):
    """Exit handlers run and buffers are flushed; after a hard exit neither."""
    head = "import atexit, os, signal, sys\natexit.register(print, 'at exit')\nprint('begun')\n"
    real, forked = both(head + ending)
    assert (forked.returncode, forked.stdout) == (real.returncode, real.stdout)
    assert status in (None, forked.returncode)
    # A traceback also has the zygote's line that runs the program.
    assert forked.stderr.splitlines()[-1:] == real.stderr.splitlines()[-1:]


def test_what_the_program_has_made_is_destroyed_at_its_end_in_the_same_order():
    """Handlers from the last to the first; then the objects of ``__main__``, which may use torch; then handlers of C."""
    program = """
import atexit, ctypes, os, sys, torch
class Kept:
    def __del__(self):
        torch.empty(3).fill_(1)
        os.write(1, b"object,")
kept = Kept()
libc = ctypes.CDLL(None)
libc.strdup.restype = ctypes.c_void_p
# It is called with the status, which is the descriptor, and with the text.
libc.on_exit(ctypes.cast(libc.dprintf, ctypes.c_void_p), ctypes.c_void_p(libc.strdup(b"library")))
atexit.register(os.write, 1, b"first,")
atexit.register(os.write, 1, b"second,")
sys.exit(1)
"""
    real, forked = both(program)
    assert real.stdout == forked.stdout == "second,first,object,library"
    assert (real.returncode, real.stderr) == (forked.returncode, forked.stderr) == (1, "")


PROBE = """
import os, sys
if os.environ["TELLS"]:
    assert open("/proc/self/cmdline").read() == "\\0".join([*sys.orig_argv, ""])
print(sys.orig_argv[1:])
print(sys.argv, __name__, os.path.abspath(sys.path[0]), sys.stdin.read(), os.environ["FILE"])
print("broke", file=sys.stderr)
sys.exit(3)
"""


@pytest.mark.parametrize("arguments", [["probe.py", "a b"], ["-u", "probe.py"], ["-c", PROBE, "-a"], ["-m", "probe", "a"]], ids=" ".join)
def test_what_others_start_is_what_python_would_run(tmp_path, arguments):
    (tmp_path / "probe.py").write_text(PROBE)
    stock = interpreter("stock")
    real, forked = (
        subprocess.run([python, *arguments], cwd=tmp_path, env=environment(FILE="f", TELLS="1" * tells_words(stock)), input="in", capture_output=True, text=True)
        for python in (stock, Zygote.of(stock).python)
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (real.returncode, real.stdout, real.stderr)
    assert real.returncode == 3 and real.stdout.endswith(f" __main__ {tmp_path} in f\n")


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 7), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_signal_to_what_others_start_is_the_programs(number, status):
    text = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(os.getpid(), flush=True)
time.sleep(60)
"""
    python = Zygote.of(interpreter("stock")).python
    with subprocess.Popen([python, "-c", text], env=environment(), stdout=subprocess.PIPE, text=True) as started:
        program = int(started.stdout.readline())
        assert program != started.pid
        started.send_signal(number)
        # The program has this stream, too: it ends with the last of both.
        assert started.stdout.read() == ""
    assert started.returncode == status


def test_one_that_takes_too_long_is_killed_and_the_next_one_runs():
    stock = interpreter("stock")
    with pytest.raises(subprocess.TimeoutExpired):
        start(stock, "import time; time.sleep(60)", environment(), 0.5, True)
    assert start(stock, "print(7)", environment(), 60, True).stdout == "7\n"


def test_no_two_draw_the_same_random_numbers():
    program = "import random, uuid; print(random.random(), uuid.uuid4())"
    first, second = (start(interpreter("stock"), program, environment(), 60, True).stdout for _ in range(2))
    assert first != second


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
