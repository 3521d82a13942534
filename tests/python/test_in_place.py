"""Memory that a program has already, pinned where it is: `pinbuddy.pin_`, `unpin_` and `pinned`."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch
from conftest import forking, needs
from measure import environment
from table import answers

# With the released library, whose programs each import torch: a pin of each way to map memory, and what is decided between threads, in
# a capture and in a child. The rest is decided in Python, or by the same calls.
release = pytest.mark.release

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
EXAMPLE = Path(__file__).parents[2] / "examples/one_copy.py"

HAS_HUGE_PAGES = pytest.mark.skipif(not THP.exists() or "[never]" in THP.read_text(), reason="the kernel gives no transparent huge pages")

START = """
import gc, signal, tempfile, warnings
warnings.simplefilter("ignore")  # Of arrays that may not be written.
from program import *
import numpy
from pinbuddy import _in_place
use_gpu()
N = 1 << 20
folders = [tempfile.TemporaryDirectory(dir=it) for it in (None, "/dev/shm")]
FILE, SHM = (it.name + "/data" for it in folders)
for name in (FILE, SHM):
    numpy.arange(N, dtype=numpy.int32).tofile(name)
before, registered = host_stats()["allocated_bytes.current"], sim()["host_registers"] - sim()["host_unregisters"]
def heap():  # More than 32 MiB, which glibc maps by itself.
    return torch.full((40 << 20,), 7, dtype=torch.uint8)
def shared():
    return torch.full((1 << 20,), 7, dtype=torch.uint8).share_memory_()
def busy(act):  # On a stream that is busy for a while.
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(300_000_000)
        return stream, act(), not stream.query()
def held():
    bytes_of = pinbuddy.stats()["in_place"]["bytes"], host_stats()["allocated_bytes.current"] - before
    return sim()["host_registers"] - sim()["host_unregisters"] - registered, *bytes_of
"""
NONE = [0, 0, 0]


@pytest.fixture
def placed(run):
    """A program's outcome, in which no memory is unpinned that work still uses."""
    def placed(program: str, **variables):
        outcome = run(START + program, PINBUDDY_SIM_HAZARDS=1, **({"PINBUDDY_SIM_LOCK": 0} | variables))
        assert "pinbuddy-sim: hazard" not in outcome.stderr
        return outcome

    return placed


@release
def test_memory_of_any_kind_is_pinned_where_it_is_and_goes_with_its_storage(placed):
    kinds = placed("""
numpy.save(FILE + ".npy", numpy.arange(N))
KINDS = {
    "heap": lambda: torch.arange(9 * N, dtype=torch.int32),
    "shared": lambda: torch.arange(N + 77, dtype=torch.int32).share_memory_(),
    "a file": lambda: torch.from_file(FILE, shared=True, size=N - 77, dtype=torch.int32),
    "a file, to be read": lambda: torch.from_numpy(numpy.memmap(FILE, dtype=numpy.int32, mode="r")),
    "behind a header": lambda: torch.from_numpy(numpy.load(FILE + ".npy", mmap_mode="r")),
    "whole pages": lambda: torch.asarray(torch.UntypedStorage.from_file(FILE, False, 4 * N)[8192:819200], dtype=torch.uint8),
    "/dev/shm": lambda: torch.from_numpy(numpy.memmap(SHM, dtype=numpy.int32, mode="r+")),
}
def becomes_of(make):
    tensor = make()
    address, whole = tensor.data_ptr(), tensor.clone()
    assert pinbuddy.pin_(tensor[3:]).is_pinned() and tensor.is_pinned() and tensor.data_ptr() == address
    pages = held()
    assert pages[0] == 1 and pages[1] == pages[2] >= tensor.nbytes
    pinbuddy.unpin_(tensor)
    after = tensor.is_pinned(), held()
    with pinbuddy.pinned(tensor):
        assert tensor.is_pinned() and held() == pages
    assert not tensor.is_pinned() and held()[0] == 0
    pinbuddy.pin_(tensor)
    stream, copy, is_busy = busy(lambda: tensor.to("cuda", non_blocking=True))
    del tensor
    gc.collect()
    return after, is_busy, stream.query(), held(), bool((copy.cpu() == whole).all())
print(json.dumps({kind: becomes_of(make) for kind, make in KINDS.items()}))
""").value
    assert len(kinds) == 7
    for kind, became in kinds.items():
        assert became == [[False, NONE], True, True, NONE, True], kind


test_memory_that_is_there_already = answers({
    "the history has its begin and end": pytest.param(("""
tensor = heap()
torch.cuda.memory._record_memory_history(record_pinned_host_memory=True)
def pins_it():
    pinbuddy.pin_(tensor)
pins_it()
pinbuddy.unpin_(tensor)
trace = torch.cuda.memory._snapshot()["host_traces"]
pages, actions = {it["addr"] for it in trace}, [it["action"] for it in trace]
inside = all(it["addr"] <= tensor.data_ptr() < it["addr"] + it["size"] for it in trace)
answer(actions[:2], actions[-1], len(pages), inside, "pins_it" in [it["name"] for it in trace[1]["frames"]])
""", [["segment_alloc", "alloc"], "segment_free", 1, True, True]), marks=needs(15, "memory of others in its history")),
    "what cannot be pinned is named and nothing stays pinned": ("""
good = torch.zeros(9 << 20)
part = torch.asarray(torch.UntypedStorage.from_file(FILE, False, 4 * N)[5000:], dtype=torch.uint8)
twin, kept = torch.from_numpy(good.numpy()), [torch.zeros(700) for _ in range(9)]
cases = {
    "TypeError: found ndarray": lambda: pinbuddy.pin_(numpy.zeros(8)),
    "ValueError: on cuda:0, expected a strided one": lambda: pinbuddy.pin_(torch.zeros(8, device="cuda")),
    "ValueError: torch.sparse_coo": lambda: pinbuddy.pin_(torch.eye(8).to_sparse()),
    "RuntimeError: already pinned": lambda: pinbuddy.pin_(torch.zeros(8 << 20, pin_memory=True)),
    "RuntimeError: found no pin of its storage": lambda: pinbuddy.unpin_(torch.zeros(8)),
    "RuntimeError: within the budget of 100 MiB": lambda: pinbuddy.pin_(torch.zeros(40 << 20)),
    "RuntimeError: shares the page": lambda: pinbuddy.pin_(kept[4]),
    "RuntimeError: shares the page ": lambda: pinbuddy.pin_(torch.from_numpy(good.numpy()[2000:])),
    "RuntimeError: the tensor of the whole file": lambda: pinbuddy.pin_(part),
    "ValueError: found 0 processes": lambda: pinbuddy.pin_(good, processes=0),
    "ValueError: on cuda:0": lambda: pinbuddy.pinned(good, torch.zeros(8, device="cuda")).__enter__(),
}
def check(name, act):
    (kind, part), said = name.strip().split(": "), refused(act)
    assert said.startswith(kind) and part in said, said
for name, act in cases.items():
    check(name, act)
with pinbuddy.pinned(good):
    check("RuntimeError: by pin_ of another storage", lambda: pinbuddy.pin_(twin))
    assert twin.is_pinned() and not any(it.is_pinned() for it in kept)
torch._C._host_emptyCache()
answer(good.is_pinned(), pinbuddy.pin_(torch.zeros(0)).numel(), held()[:2])
""", [False, 0, [0, 0]], {"BUDDY_MAX_MB": 100}),
    "a refusal by CUDA leaves nothing pinned and a file that becomes shorter ends nobody": ("""
tensor, small = heap(), torch.from_file(FILE, shared=True, size=N, dtype=torch.int32)
why = refused(lambda: pinbuddy.pin_(tensor))
to_write = refused(lambda: pinbuddy.pin_(torch.from_file(FILE + ".new", shared=True, size=9 * N, dtype=torch.int32)))
pinbuddy.pin_(small)
os.truncate(FILE, 1 << 20)
pinbuddy.unpin_(small)
shorter = refused(lambda: pinbuddy.pin_(small))
answer("out of memory" in why and "disk" not in why, "disk's file" in to_write, "has become shorter" in shorter, int(small[9]), tensor.is_pinned(), small.is_pinned(), held())
""", [True, True, True, 9, False, False, NONE], {"PINBUDDY_SIM_FAIL_PIN_AFTER_MB": 24, "BUDDY_WARMUP": "off"}),
    "memory that nobody has touched gets huge pages": pytest.param(("""
import re
def huge():  # In the mapping of the tensor, KiB.
    areas = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) .*?^AnonHugePages: +([0-9]+)", open("/proc/self/smaps").read(), re.M | re.S)
    return sum(int(kib) for start, end, kib in areas if int(start, 16) < tensor.data_ptr() + tensor.nbytes and tensor.data_ptr() < int(end, 16))
tensor = torch.empty(64 << 20, dtype=torch.uint8)
before = huge()
pinbuddy.pin_(tensor)
answer(before, huge() > 0)
""", [0, True]), marks=HAS_HUGE_PAGES),
    "an interrupt stops a pin and takes it back": ("""
tensor, call = torch.zeros(300 << 20, dtype=torch.uint8), _in_place._call
def interrupted(storage, asked, pin):
    call(storage, asked, pin)
    if asked:
        signal.raise_signal(signal.SIGINT)
_in_place._call = interrupted
kind = refused(lambda: pinbuddy.pin_(tensor))
_in_place._call = call
answer(kind, held(), pinbuddy.pin_(tensor).is_pinned())
""", ["KeyboardInterrupt: ", NONE, True], {"BUDDY_MAX_MB": 400}),
    "other threads run while a storage that goes waits for a copy or a replay": pytest.param(("""
tensors = [pinbuddy.pin_(shared()), pinbuddy.pin_(heap())]
graph, there = torch.cuda.CUDAGraph(), torch.zeros(40 << 20, dtype=torch.uint8, device="cuda")
with torch.cuda.graph(graph):
    there.copy_(tensors[1], non_blocking=True)
ticks, stop = 0, False
def tick():
    global ticks
    while not stop:
        ticks += 1
        time.sleep(0.001)
thread = threading.Thread(target=tick)
thread.start()
def while_it_goes(act):
    stream, copy, is_busy = busy(act)
    before = ticks
    tensors.pop()
    return is_busy, stream.query(), ticks - before > 20
both = [while_it_goes(it) for it in (graph.replay, lambda: tensors[0].to("cuda", non_blocking=True))]
stop = True
thread.join()
answer(both, held(), bool((there.cpu() == 7).all()))
""", [[[True, True, True]] * 2, NONE, True]), marks=release),
    "a capture puts the end off": pytest.param(("""
one, other, third = pinbuddy.pin_(shared()), pinbuddy.pin_(heap()), pinbuddy.pin_(shared())
graph, on_device = torch.cuda.CUDAGraph(), torch.zeros(8, device="cuda")
with torch.cuda.graph(graph, capture_error_mode="global"):
    on_device += 1
    pinbuddy.unpin_(one)
    pinbuddy.unpin_(third)
    del other
    during = held()[0], one.is_pinned()
graph.replay()  # A capture that is broken off cannot be.
torch.cuda.synchronize()
pinbuddy.pin_(third)  # It goes on.
pinbuddy.empty_cache()
answer(during, one.is_pinned(), third.is_pinned(), held()[0])
""", [[3, True], False, True, 1]), marks=release),
    "memory of any length that glibc maps by itself is pinned": ("""
for more in [*range(0, 4096, 512), *range(3940, 4097, 4)]:
    tensor = torch.empty((40 << 20) + more, dtype=torch.uint8)
    pinbuddy.pin_(tensor)
    assert tensor.is_pinned() and held()[0] == 1, more
    del tensor
answer(held())
""", [NONE]),
    "a block ends its pins and shared memory stays what other processes have": ("""
from multiprocessing.reduction import ForkingPickler
import torch.multiprocessing
tensor, other = shared(), heap()
with pinbuddy.pinned(tensor, other):
    other.untyped_storage().resize_(0)
    assert held()[0] == 1
    received = ForkingPickler.loads(bytes(ForkingPickler.dumps(tensor)))
    tensor.fill_(3)
    seen = tensor.is_shared(), tensor.is_pinned(), int(received[5])
    pinbuddy.pin_(tensor)
    pinbuddy.unpin_(tensor)
    pinbuddy.unpin_(tensor)
answer(seen, held())
""", [[True, True, 3], NONE]),
    "a child unregisters nothing": pytest.param(("""
kept, other = pinbuddy.pin_(heap()), pinbuddy.pin_(shared())
def child():
    global kept, other
    said = "parent" in refused(lambda: pinbuddy.unpin_(kept))
    kept[0] = other[0] = 1
    stats = pinbuddy.stats()["in_place"]
    del kept, other
    gc.collect()
    return 7 if said and stats is None else 8
answer(forked(child), kept.is_pinned() and other.is_pinned(), int(kept[0]), int(other[0]), held()[0])
""", [7, True, 7, 1, 2]), marks=release),
    "a process ends while copies of what it pinned are under way": pytest.param(("""
tensors = [pinbuddy.pin_(heap()), pinbuddy.pin_(shared())]
stream, copies, is_busy = busy(lambda: [it.to("cuda", non_blocking=True) for it in tensors])
answer(is_busy, held()[0])
""", [True, 2]), marks=pytest.mark.whole_end("how a process ends is what is tested")),
}, how="placed", quiet=True)


def test_without_the_engine_nothing_is_said_to_be_pinned(run):
    for off in ({"BUDDY_DISABLE": 1}, {"PINBUDDY_SIM_DEVICES": 0}):
        assert "the engine is off" in run("import pinbuddy, torch; pinbuddy.pin_(torch.zeros(8))", check=False, **off).stderr


def one_copy(*options: str) -> str:
    """What the example says."""
    command = [forking(), EXAMPLE, *options]
    return subprocess.run(command, env=environment(PINBUDDY_SIM_LOCK=0), capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.checkout("runs an example")
def test_processes_that_map_one_file_hold_it_once():
    said = one_copy("--processes=3")
    assert said.count(": 64 MiB pinned in place, all bytes arrived") == 3
    assert said.splitlines()[-1] == "in all 192 MiB pinned, 64 MiB of memory"


@pytest.mark.checkout("runs an example")
def test_tensors_of_a_safetensors_file_are_parts_of_its_pinned_memory(tmp_path):
    file, values = tmp_path / "model.safetensors", numpy.arange(100_000, dtype=numpy.float32)
    parts = {"a": ("F32", [5, 20_000], 0, 400_000), "b": ("I64", [0], 400_000, 400_000), "c": ("BF16", [3], 400_000, 400_006)}
    header = {name: {"dtype": kind, "shape": shape, "data_offsets": [begin, end]} for name, (kind, shape, begin, end) in parts.items()}
    text = json.dumps({"__metadata__": {"of": "a test"}} | header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(len(text).to_bytes(8, "little") + text + values.tobytes() + b"\x80\x3f" * 3)
    said = one_copy("--processes=2", f"--file={file}")
    assert said.count("all bytes arrived") == said.count("; 3 of 3 tensors pinned") == 2
    sys.path.insert(0, str(EXAMPLE.parent))
    tensors = importlib.import_module("one_copy").tensors_of(torch.from_numpy(numpy.fromfile(file, dtype=numpy.uint8)))
    assert tensors["a"].equal(torch.from_numpy(values).reshape(5, 20_000)) and tensors["c"].tolist() == [1, 1, 1] and tensors["b"].shape == (0,)
