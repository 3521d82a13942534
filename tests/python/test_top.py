"""What `BUDDY_LIVE=1` shows to `pinbuddy top`: the program's counters, to nobody else, and nothing once it has ended."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import forked
import pytest
from measure import environment
from table import answers

HEAD = """
from program import *
import signal
def shown(pid, **expected):
    # A page is refreshed every 200 ms.
    rows = []
    until(lambda: rows.append(top(pid)) or rows[-1].items() >= {"state": "shown", **expected}.items(), 20)
    return rows[-1]
def files(pid="self"):
    links = [os.readlink(f"/proc/{pid}/fd/{it}") for it in os.listdir(f"/proc/{pid}/fd") if os.path.lexists(f"/proc/{pid}/fd/{it}")]
    return [it for it in links if "pinbuddy-live" in it]
"""
EXACT = {"BUDDY_LIVE": "1", "BUDDY_GROWTH": "exact", "BUDDY_WARMUP": "off", "BUDDY_MAX_MB": "1024"}

test_a_page = answers({
    "says what the statistics say": (HEAD + """
before = (files(), top()["state"])
kept, freed = pinned(8), pinned(16)
del freed
row = shown(os.getpid(), live_bytes=8 * MIB, served=2)
engine = pinbuddy.stats()["engine"]
same = [row["pinned_bytes"] == engine["pinned_bytes"]["current"], row["misses"] == engine["misses"],
        row["segments"] == engine["segments"]["current"], row["budget_bytes"] == pinbuddy.stats()["budget"]["bytes"]]
# Neither a flush nor a cached block misleads.
again = [pinned(16) for _ in range(1)]
hits = shown(os.getpid(), live_bytes=24 * MIB, served=3)["hit_rate"]
# Nothing is there before the first pin.
answer(before, same, row["waits"], row["waited_ns"] > 0, hits, row["device"], row["pending_bytes"])
""", [[[], "silent"], [True] * 4, 2, True, pytest.approx(1 / 3), 0, 0]),
    "of a child whose parent never pinned shows its own and leaves nothing behind": (HEAD + """
def left():
    return sorted(it for folder in ("/dev/shm", "/tmp") for it in os.listdir(folder) if "live" in it)
before = left()
child = os.fork()
if child == 0:
    kept = pinned(8)
    time.sleep(60)
    os._exit(0)
row = shown(child, live_bytes=8 * MIB)
mode = [os.stat(f"/proc/{child}/fd/{it}").st_mode & 0o777 for it in os.listdir(f"/proc/{child}/fd")
        if "pinbuddy-live" in os.readlink(f"/proc/{child}/fd/{it}")]
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
answer(row["pid"] == child, files(), mode, top(child)["remark"], left() == before)
""", [True, [], [0o400], "there is no such process, or not any more", True]),
    "that cannot be made is said and the program goes on": (HEAD + """
kept = pinned(8)
answer(files(), of_engine(kept))
""", [[], True], {"PINBUDDY_SIM_FAULTS": "memfd_create:1+=24"}, "BUDDY_LIVE=1 has no effect"),
}, quiet=True, **EXACT)


def test_a_terminal_shows_a_table_until_q(tmp_path):
    """As a user sees it, in 80 columns: the table is drawn again, keys are not shown, and q ends it."""
    (script := tmp_path / "train.py").write_text("""
import time, torch
kept = torch.empty(8 << 20, dtype=torch.uint8, pin_memory=True)
print("pinned", flush=True)
time.sleep(60)
""")
    program = subprocess.Popen([sys.executable, script], env=environment(**EXACT), stdout=subprocess.PIPE, text=True)
    ours, theirs = pty.openpty()
    try:
        assert program.stdout.readline().startswith("pinned")
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        before = termios.tcgetattr(theirs)
        command = [sys.executable, "-m", "pinbuddy", "top", "--interval", "0.2", str(program.pid)]
        shows = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
        seen = read_until(ours, lambda text: text.count("train.py") >= 3)
        os.write(ours, b"xq")
        seen += read_until(ours, lambda _: shows.poll() is not None)
        assert shows.wait(timeout=20) == 0
        assert termios.tcgetattr(theirs) == before, "the terminal is as it was"
    finally:
        program.kill()
        program.wait()
        os.close(theirs)
        os.close(ours)
    assert "8.00 MiB" in seen and "\x1b[J" in seen and "xq" not in seen
    for line in re.sub(r"\x1b\[[0-9]*[A-Za-z]", "", seen).splitlines():
        assert len(line) <= 80, line


def read_until(terminal: int, enough, within: float = 60) -> str:
    text, end = "", time.monotonic() + within
    while not enough(text):
        assert time.monotonic() < end, text
        if select.select([terminal], [], [], 0.1)[0]:
            text += os.read(terminal, 65536).decode()
    return text


EXAMPLE = Path(__file__).parents[2] / "examples" / "tensorboard_stats.py"


def test_the_example_logs_each_step_and_says_what_to_install_where_tensorboard_is_not(run):
    outcome = run('import sys; sys.modules["tensorboard"] = None; ' + forked.program([str(EXAMPLE)]), check=False)
    assert outcome.returncode == 1 and "pip install tensorboard" in outcome.stderr and "Traceback" not in outcome.stderr
    program = """
from program import *
import types
points = []
class SummaryWriter:
    def __init__(self, folder): pass
    def __enter__(self): return self
    def __exit__(self, *why): pass
    def add_scalars(self, name, values, step): points.append((step, values))
    def add_scalar(self, name, value, step): points.append((step, {name: value}))
module = types.ModuleType("torch.utils.tensorboard")
module.SummaryWriter = SummaryWriter
sys.modules["torch.utils.tensorboard"] = module
""" + forked.program([str(EXAMPLE), "somewhere"]) + "\nanswer(len(points), points[-2][1])"
    count, last = run(program, **EXACT).value
    assert count == 40
    # Four buffers are kept, and one more is made before the oldest goes.
    assert last["pinned"] == 40 and last["active"] == 32 and last["pending"] == 0
