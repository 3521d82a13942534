"""Memory that a program has already, pinned where it is: `pinbuddy.pin_`, `unpin_` and `pinned`."""

import re
from pathlib import Path

import pytest
from in_place import START

pytestmark = pytest.mark.release

# What each kind of memory is; `kept` has what must live besides. On the heap glibc gives more than 32 MiB a mapping of its own.
KINDS = {
    "heap": "tensor = torch.arange(9 * N, dtype=torch.int32)",
    "numpy": "tensor = torch.from_numpy(numpy.arange(9 * N, dtype=numpy.int32))",
    "shared": "tensor = torch.arange(N + 77, dtype=torch.int32).share_memory_()",
    "a file, shared": "tensor = torch.from_file(FILE, shared=True, size=N - 77, dtype=torch.int32)",
    "a file, private": "tensor = torch.from_file(FILE, shared=False, size=N, dtype=torch.int32)",
    "a file, to be read": "tensor = torch.from_numpy(numpy.memmap(FILE, dtype=numpy.int32, mode='r'))",
    "an array behind its header": "numpy.save(FILE + '.npy', numpy.arange(N)); tensor = torch.from_numpy(numpy.load(FILE + '.npy', mmap_mode='r'))",
    "whole pages of a file": """kept = torch.UntypedStorage.from_file(FILE, False, 4 * N)
tensor = torch.asarray(kept[8192:819200], dtype=torch.uint8)""",
    "/dev/shm": "tensor = torch.from_numpy(numpy.memmap(SHM, dtype=numpy.int32, mode='r+'))",
}

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


def test_a_refused_pin_leaves_the_cache_as_it_is(run):
    outcome = run(
        START
        + """
del_me = pinned(48)
del del_me
idle = pinbuddy.stats()["engine"]["pinned_bytes"]["current"]
why = refused(lambda: pinbuddy.pin_(torch.zeros(80 << 20, dtype=torch.uint8)))[1]
held = pinbuddy.stats()["engine"]["pinned_bytes"]["current"]
torch._C._host_emptyCache()
with pinbuddy.pinned(torch.zeros(80 << 20, dtype=torch.uint8)):
    pass
answer(idle > 0 and held == idle, "pinbuddy.empty_cache()" in why)
""",
        PINBUDDY_SIM_LOCK=0,
        BUDDY_MAX_MB=100,
        BUDDY_WARMUP="off",
    )
    assert outcome.value == [True, True]


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
good = torch.zeros(9 << 20)
mapped = torch.UntypedStorage.from_file(FILE, False, 4 * N)
whole, part = (torch.asarray(mapped[start:], dtype=torch.uint8) for start in (0, 5000))
twin = torch.from_numpy(good.numpy())
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    fake = torch.zeros(8)
kept = [torch.zeros(700) for _ in range(9)]
cases = {
    "no tensor": lambda: pinbuddy.pin_(numpy.zeros(8)),
    "a GPU's": lambda: pinbuddy.pin_(torch.zeros(8, device="cuda")),
    "sparse": lambda: pinbuddy.pin_(torch.eye(8).to_sparse()),
    "meta": lambda: pinbuddy.pin_(torch.zeros(8, device="meta")),
    "pinned by the allocator": lambda: pinbuddy.pin_(torch.zeros(8 << 20, pin_memory=True)),
    "not pinned": lambda: pinbuddy.unpin_(torch.zeros(8)),
    "beyond the budget": lambda: pinbuddy.pin_(torch.zeros(40 << 20)),
    "beside others on the heap": lambda: pinbuddy.pin_(kept[4]),
    "a part of the heap": lambda: pinbuddy.pin_(torch.from_numpy(good.numpy()[2000:])),
    "a part of a file": lambda: pinbuddy.pin_(part),
    "fake": lambda: pinbuddy.pin_(fake),
    "fake, unpinned": lambda: pinbuddy.unpin_(fake),
    "no process": lambda: pinbuddy.pin_(good, processes=0),
    "one of several": lambda: pinbuddy.pinned(good, torch.zeros(8, device="cuda")).__enter__(),
}
answers = {name: refused(act) for name, act in cases.items()}
with pinbuddy.pinned(good):
    answers["another's pages"] = refused(lambda: pinbuddy.pin_(twin))
    other_is_pinned = [it.is_pinned() for it in kept]
assert not any(other_is_pinned)
torch._C._host_emptyCache()
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
        "beside others on the heap": ("RuntimeError", "with other memory of the heap"),
        "a part of the heap": ("RuntimeError", "with other memory of the heap"),
        "a part of a file": ("RuntimeError", "pin_ the tensor of the whole file"),
        "fake": ("RuntimeError", "expected a CPU tensor's"),
        "fake, unpinned": ("RuntimeError", "could not be unpinned"),
        "no process": ("ValueError", "found 0 processes"),
        "another's pages": ("RuntimeError", "another storage's pin"),
        "not pinned": ("RuntimeError", "found no pin of its storage"),
        "beyond the budget": ("RuntimeError", "within the budget of 100 MiB"),
        "one of several": ("ValueError", "on cuda:0"),
    }
    for name, (kind, part) in parts.items():
        assert answers[name][0] == kind and part in answers[name][1], answers[name]
    assert (good, is_as_before, empty) == (False, True, 0)


def test_a_refusal_by_cuda_leaves_nothing_pinned(run):
    outcome = run(
        START
        + """
tensor = torch.zeros(40 << 20, dtype=torch.uint8)
before_it = sim()["host_registers"]
why = refused(lambda: pinbuddy.pin_(tensor))[1]
counts = sim()
answer("out of memory" in why, tensor.is_pinned(), state() == NONE, counts["pinned_bytes"], counts["host_registers"] == before_it)
""",
        PINBUDDY_SIM_LOCK=0,
        PINBUDDY_SIM_FAIL_PIN_AFTER_MB=24,
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
