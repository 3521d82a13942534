"""Memory that a program has already, pinned where it is: `pinbuddy.pin_`, `unpin_` and `pinned`."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.release

# What each kind of memory is; `kept` has what must live besides.
KINDS = {
    "heap": "tensor = torch.arange(N, dtype=torch.int32)",
    "small, beside others on the heap": "kept = [torch.arange(700, dtype=torch.int32) for _ in range(9)]; tensor = kept[4]",
    "numpy": "import numpy; tensor = torch.from_numpy(numpy.arange(N, dtype=numpy.int32))",
    "shared": "tensor = torch.arange(N, dtype=torch.int32).share_memory_()",
    "a file, shared": "tensor = torch.from_file(FILE, shared=True, size=N, dtype=torch.int32)",
    "a file, private": "tensor = torch.from_file(FILE, shared=False, size=N, dtype=torch.int32)",
    "a file, to be read": "import numpy; tensor = torch.from_numpy(numpy.memmap(FILE, dtype=numpy.int32, mode='r'))",
    "a part of a file": """kept = torch.UntypedStorage.from_file(FILE, False, 4 * N)
tensor = torch.asarray(kept[5000:900000], dtype=torch.uint8)""",
    "/dev/shm": "import numpy; tensor = torch.from_numpy(numpy.memmap(SHM, dtype=numpy.int32, mode='r+'))",
}

START = """
import gc, warnings
warnings.simplefilter("ignore")  # Of arrays that may not be written.
from program import *
import numpy, tempfile
import pinbuddy
use_gpu()
N = 1 << 20
folders = [tempfile.TemporaryDirectory(dir=it) for it in (None, "/dev/shm")]
FILE, SHM = (it.name + "/data" for it in folders)
for name in (FILE, SHM):
    numpy.arange(N, dtype=numpy.int32).tofile(name)

def in_place():
    return pinbuddy.stats()["in_place"]["bytes"], host_stats()["allocated_bytes.current"] - before

before = host_stats()["allocated_bytes.current"]
registered = sim()["host_registers"] - sim()["host_unregisters"]
NONE = {"in_place": (0, 0), "registered": 0}

def state():
    return {"in_place": in_place(), "registered": sim()["host_registers"] - sim()["host_unregisters"] - registered}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_memory_of_any_kind_is_pinned_where_it_is_and_goes_with_its_storage(run, kind):
    program = f"""
{KINDS[kind]}
address, whole = tensor.data_ptr(), tensor.clone()
assert pinbuddy.pin_(tensor[3:]).is_pinned() and tensor.is_pinned() and tensor.data_ptr() == address
pages = in_place()
arrived = bool((tensor.to("cuda", non_blocking=True).cpu() == whole).all())
pinbuddy.unpin_(tensor)
after = tensor.is_pinned(), state() == NONE
with pinbuddy.pinned(tensor):
    inside = tensor.is_pinned(), in_place() == pages
outside = tensor.is_pinned(), state() == NONE
pinbuddy.pin_(tensor)
held = state()["registered"]
copy = tensor.to("cuda", non_blocking=True)
bytes_of = tensor.nbytes
del tensor
kept = None
gc.collect()
answer(arrived, pages[0] >= bytes_of and pages[0] == pages[1], after, inside, outside, held, state() == NONE, bool((copy.cpu() == whole).all()))
"""
    outcome = run(START + program, PINBUDDY_SIM_HAZARDS=1, PINBUDDY_SIM_LOCK=0)
    assert outcome.value == [True, True, [False, True], [True, True], [False, True], 1, True, True]
    assert "pinbuddy-sim: hazard" not in outcome.stderr and outcome.warnings == []


def test_a_storage_that_goes_during_a_copy_waits_for_it(run):
    outcome = run(
        START
        + """
tensor = pinbuddy.pin_(torch.full((1 << 22,), 7, dtype=torch.uint8))
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    torch.cuda._sleep(300_000_000)
    copy = tensor.to("cuda", non_blocking=True)
busy = not stream.query()
del tensor
done = stream.query(), state() == NONE
answer(busy, done, bool((copy.cpu() == 7).all()))
""",
        PINBUDDY_SIM_HAZARDS=1,
        PINBUDDY_SIM_LOCK=0,
    )
    assert outcome.value == [True, [True, True], True]
    assert "hazard" not in outcome.stderr


def test_views_parts_and_neighbours_are_pinned_as_long_as_one_of_them_is(run):
    outcome = run(
        START
        + """
whole = torch.UntypedStorage.from_file(FILE, False, 4 * N)
one, other = (torch.asarray(whole[start : start + 500_000], dtype=torch.uint8) for start in (1000, 501_000))
pinbuddy.pin_(one)
pinbuddy.pin_(other)
twice = pinbuddy.pin_(one).is_pinned()
pages = in_place()[0]
pinbuddy.unpin_(one)
counted = one.is_pinned()
pinbuddy.unpin_(one)
left = one[: 400_000].is_pinned(), other.is_pinned(), bool((other.to("cuda", non_blocking=True).cpu() == other).all())
del other
answer(twice, pages, counted, left, state() == NONE)
""",
        PINBUDDY_SIM_HAZARDS=1,
        PINBUDDY_SIM_LOCK=0,
    )
    # Bytes 1000 to 1,001,000 of a file that begins at a page.
    assert outcome.value == [True, 245 * 4096, True, [False, True, True], True]
    assert "hazard" not in outcome.stderr


def test_shared_memory_stays_what_other_processes_have(run):
    outcome = run(
        START
        + """
import torch.multiprocessing as multiprocessing
from multiprocessing.reduction import ForkingPickler
tensor = pinbuddy.pin_(torch.zeros(1 << 20, dtype=torch.uint8).share_memory_())
packed = bytes(ForkingPickler.dumps(tensor))
other = ForkingPickler.loads(packed)
tensor.fill_(3)
answer(tensor.is_shared(), tensor.is_pinned(), int(other[5]))
""",
        PINBUDDY_SIM_LOCK=0,
    )
    assert outcome.value == [True, True, 3]


def test_what_cannot_be_pinned_is_named_and_nothing_stays_pinned(run):
    outcome = run(
        START
        + """
def refused(act):
    try:
        act()
    except (TypeError, ValueError, RuntimeError) as error:
        return type(error).__name__, str(error)
    return "", ""

good = torch.zeros(1 << 20)
cases = {
    "no tensor": lambda: pinbuddy.pin_(numpy.zeros(8)),
    "a GPU's": lambda: pinbuddy.pin_(torch.zeros(8, device="cuda")),
    "sparse": lambda: pinbuddy.pin_(torch.eye(8).to_sparse()),
    "meta": lambda: pinbuddy.pin_(torch.zeros(8, device="meta")),
    "pinned by the allocator": lambda: pinbuddy.pin_(torch.zeros(8 << 20, pin_memory=True)),
    "not pinned": lambda: pinbuddy.unpin_(torch.zeros(8)),
    "beyond the budget": lambda: pinbuddy.pin_(torch.zeros(40 << 20)),
    "one of several": lambda: pinbuddy.pinned(good, torch.zeros(8, device="cuda")).__enter__(),
}
answers = {name: refused(act) for name, act in cases.items()}
answer(answers, good.is_pinned(), state() == NONE, pinbuddy.pin_(torch.zeros(0)).numel())
""",
        PINBUDDY_SIM_LOCK=0,
        BUDDY_MAX_MB=100,
    )
    answers, good, is_as_before, empty = outcome.value
    parts = {
        "no tensor": ("TypeError", "found ndarray, expected a tensor"),
        "a GPU's": ("ValueError", "on cuda:0, expected a strided one"),
        "sparse": ("ValueError", "torch.sparse_coo"),
        "meta": ("ValueError", "on meta"),
        "pinned by the allocator": ("RuntimeError", "already"),
        "not pinned": ("RuntimeError", "found no pin of its storage"),
        "beyond the budget": ("RuntimeError", "within the budget of 100 MiB"),
        "one of several": ("ValueError", "on cuda:0"),
    }
    for name, (kind, part) in parts.items():
        assert answers[name][0] == kind and part in answers[name][1], answers[name]
    assert (good, is_as_before, empty) == (False, True, 0)


def test_a_refusal_half_way_leaves_nothing_pinned(run):
    outcome = run(
        START
        + """
tensor = torch.zeros(40 << 20, dtype=torch.uint8)
try:
    pinbuddy.pin_(tensor)
except RuntimeError as error:
    why = str(error)
counts = sim()
answer("out of memory" in why, tensor.is_pinned(), state() == NONE, counts["pinned_bytes"], counts["host_registers"] > 1)
""",
        PINBUDDY_SIM_LOCK=0,
        PINBUDDY_SIM_FAIL_PIN_AFTER_MB=24,
        BUDDY_REGISTER_CHUNK_MB=8,
        BUDDY_WARMUP="off",
    )
    assert outcome.value == [True, False, True, 0, True]


def test_a_file_that_becomes_shorter_ends_nobody(run):
    outcome = run(
        START
        + """
tensor = torch.from_file(FILE, shared=True, size=N, dtype=torch.int32)
pinbuddy.pin_(tensor[:8])
os.truncate(FILE, 1 << 20)
pinbuddy.unpin_(tensor)
try:
    pinbuddy.pin_(tensor)
except RuntimeError as error:
    why = str(error)
answer("has become shorter" in why, int(tensor[9]), tensor[:8].is_pinned(), state() == NONE)
""",
        PINBUDDY_SIM_LOCK=0,
    )
    assert outcome.value == [True, 9, False, True]


def test_a_child_unregisters_nothing(run):
    outcome = run(
        START
        + """
kept = pinbuddy.pin_(torch.zeros(1 << 20, dtype=torch.uint8))
shared = pinbuddy.pin_(torch.zeros(1 << 20, dtype=torch.uint8).share_memory_())
if (child := os.fork()) == 0:
    try:
        pinbuddy.unpin_(kept)
    except RuntimeError as error:
        said = "parent" in str(error)
    kept[0] = shared[0] = 1
    stats = pinbuddy.stats()["in_place"]
    del kept, shared
    gc.collect()
    os._exit(7 if said and stats is None else 8)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
answer(status, kept.is_pinned() and shared.is_pinned(), int(kept[0]), int(shared[0]), state()["registered"])
""",
        PINBUDDY_SIM_LOCK=0,
    )
    assert outcome.value == [7, True, 0, 1, 2]
    assert outcome.warnings == []


def test_without_the_engine_nothing_is_said_to_be_pinned(run):
    program = """
import pinbuddy, torch
from program import answer
try:
    pinbuddy.pin_(torch.zeros(8))
except RuntimeError as error:
    answer(str(error))
"""
    assert "the engine is off" in run(program, BUDDY_DISABLE=1).value[0]
    assert "found no GPU" in run(program, PINBUDDY_SIM_DEVICES=0).value[0]


def test_processes_that_map_one_file_hold_it_once(run):
    example = Path(__file__).parents[2] / "examples" / "one_copy.py"
    program = f"""
import json, subprocess, sys
done = subprocess.run([sys.executable, {str(example)!r}, "--processes=3"], capture_output=True, text=True)
print(json.dumps([done.returncode, done.stdout, done.stderr]))
"""
    code, said, errors = run(program, PINBUDDY_SIM_LOCK=0).value
    assert code == 0, errors
    pinned = re.findall(r"process \d: (\d+) MiB pinned in place, all bytes arrived", said)
    (pinned_in_all, of_memory) = map(int, re.search(r"in all (\d+) MiB pinned, (\d+) MiB of memory", said).groups())
    # The parent has read it, too, but not mapped it.
    assert (pinned, pinned_in_all, of_memory) == (["64"] * 3, 192, 64)
