"""Defects that are put there on purpose, each in a process whose clean end fails the test: `BUDDY_GUARD=1` finds the
programs' own, the simulator those of an allocator."""

import os
import re
import signal

import figures
import pytest

GUARD = {"BUDDY_GUARD": "1", "BUDDY_BLOCK_SIZE_MB": "16", "BUDDY_BLOCK_COUNT": "1", "BUDDY_WARMUP": "sync"}
HEAD = """
    tensor = pinned(2).fill_(1)
    address, size = tensor.data_ptr(), tensor.numel()
"""
# What a program does wrong, and what it is told.
DEFECTS = {
    "use after free, found at the next request": ("del tensor; ctypes.memset(address + 4096, 7, 3); pinned(2)",
        ["3 bytes of a block at ", "written after it was freed, the first at offset 4096", "bytes: 2097152"]),
    "found where another size takes the memory": ("del tensor; ctypes.memset(address + size - 1, 7, 1); pinned(15)",
        ["1 bytes of a block at ", f"the first at offset {(2 << 20) - 1}"]),
    "found when the cache is emptied": ("del tensor; ctypes.memset(address, 7, 9); torch._C._host_emptyCache()",
        ["9 bytes of a block at ", "the first at offset 0"]),
    "found at the end of the process": ("del tensor; ctypes.memset(address, 7, 9)", ["9 bytes of a block at ", "(bytes: 2097152)"]),
    "a small block, too": (
        "small = pinned(0.01); there = small.data_ptr(); del small; ctypes.memset(there, 7, 1); pinned(0.01)",
        ["1 bytes of a block at ", "(bytes: 10485)"],
    ),
    "an overrun": ("ctypes.memset(address + size, 7, 2); del tensor",
        ["2 bytes were written past the end of a block at ", "the first 0 bytes behind its end"]),
    "an overrun by a view that is too long": (
        "too_long = torch.as_strided(tensor, (16,), (1,), 0); ctypes.memset(address + size + 5, 7, 1); del too_long, tensor",
        ["1 bytes were written past the end", "the first 5 bytes behind its end"],
    ),
    "a block freed twice": ("""
    class Memory(ctypes.Structure):
        # c10::DataPtr, as libstdc++ lays it out.
        _fields_ = [("data", ctypes.c_void_p), ("free", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                    ("context", ctypes.c_void_p), ("device", ctypes.c_uint16)]
    folder = os.path.dirname(torch.__file__)
    find = ctypes.CDLL(f"{folder}/lib/libtorch_cpu.so")._ZN2at16getHostAllocatorEN3c1010DeviceTypeE
    find.restype = ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))
    allocator = find(ctypes.c_int8(1))
    # Behind the two destructors.
    allocate = ctypes.CFUNCTYPE(None, ctypes.POINTER(Memory), ctypes.c_void_p, ctypes.c_size_t)(allocator[0][2])
    memory = Memory()
    allocate(ctypes.byref(memory), ctypes.cast(allocator, ctypes.c_void_p), 3 << 20)
    memory.free(memory.context)
    memory.free(memory.context)
""", ["was freed twice (bytes: 3145728), the second time by thread "]),
    "a copy that record_stream was not told of": ("""
    from torch.cuda import cudart
    source = torch.full((size,), 9, dtype=torch.uint8, device="cuda")
    stream = torch.cuda.Stream()
    runtime = ctypes.CDLL(None)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(300_000_000)
        runtime.cudaMemcpyAsync(
            ctypes.c_void_p(address), ctypes.c_void_p(source.data_ptr()), ctypes.c_size_t(size), 2,
            ctypes.c_void_p(stream.cuda_stream))
    del tensor
    stream.synchronize()
    pinned(2)
""", [f"{2 << 20} bytes of a block at ", "a copy on a stream that record_stream was not told of"]),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_programs_defect_is_found_and_the_block_named(run, defect):
    act, said = DEFECTS[defect]
    outcome = run(HEAD + "    " + act.lstrip(), check=False, **GUARD)
    assert outcome.returncode == -signal.SIGABRT, outcome.stderr
    (line,) = [it for it in outcome.stderr.splitlines() if "BUDDY_GUARD: " in it]
    for part in [*said, "thread "]:
        assert part in line, line
    # What is pointed to is quoted from the line itself.
    heading = re.search(r"\(see: pinbuddy explain '(.*)'\)$", line)[1]
    assert heading in line.partition("(see:")[0]
    figures.write({"seeded defects found": 1})


def test_a_program_without_defects_ends_as_without_the_guard(run):
    program = """
        draw = random.Random(3)
        stream, live = torch.cuda.Stream(), []
        for turn in range(400):
            mib = draw.choice([0.01, 0.5, 2, 3, 5])
            tensor = pinned(mib).fill_(turn % 200)
            if turn % 3 == 0:
                with torch.cuda.stream(stream):
                    tensor.to("cuda", non_blocking=True)
            live.append((tensor, turn % 200))
            if len(live) > 12:
                old, stamp = live.pop(draw.randrange(len(live)))
                assert int(old.min()) == int(old.max()) == stamp
            if turn % 100 == 99:
                torch._C._host_emptyCache()
        answer(len(live))
    """
    outcome = run(program, **GUARD)
    assert outcome.value == [12] and outcome.stderr == ""


@pytest.mark.parametrize("which", ["stock", "fork"])
@pytest.mark.parametrize("lie", ["cudaEventQuery", "cudaEventRecord"])
def test_an_allocator_that_ignores_events_is_found(run, which, lie):
    """The runtime answers that events are complete, or recorded, and neither is so: the allocator hands out what copies
    have in flight. The simulator says so, with the copy; our library with assertions tells it what it hands out."""
    program = """
        from faults.steps import *
        stream = torch.cuda.Stream()
        with stuck(stream):
            tensor = torch.empty(2 << 20, dtype=torch.uint8, pin_memory=True).fill_(1)
            with torch.cuda.stream(stream):
                tensor.to("cuda", non_blocking=True)
            del tensor
            again = torch.empty(2 << 20, dtype=torch.uint8, pin_memory=True).fill_(2)
        torch.cuda.synchronize()
        sys.exit(statistics()["hazards"])
    """
    watched = GUARD | {"BUDDY_GUARD": "0", "PINBUDDY_SIM_HAZARDS": "1", "PINBUDDY_SIM_QUIET": "1"}
    assert run(program, which, **watched).returncode == 0
    outcome = run(program, which, check=False, **watched, PINBUDDY_SIM_FAULT_PLAN=f"{lie}:1+=0")
    lines = [it for it in outcome.stderr.splitlines() if "hazard: " in it]
    tells = which == "fork" and os.environ.get("PINBUDDY_EXPECT_DEBUG") == "1"
    assert len(lines) == outcome.returncode == 1 + tells, outcome.stderr
    for line in lines:
        assert "pinned memory that a copy is to read (2097152 bytes" in line and "cudaMemcpyAsync" in line
    assert "hazard: an allocator hands out" in lines[0] or not tells
    # Who asked for the copy, and who for the block.
    assert "libtorch_cuda.so" in outcome.stderr
    assert "; by\n" in outcome.stderr or not tells
    figures.write({"seeded defects found": 1})
