"""Recording beside programs that only allocate: memory is bounded, and a pair of allocate and free costs little more."""

import os
import statistics
import time
from collections import Counter
from pathlib import Path

import pytest
from measure import Process, at_least, pairs_of
from plugin import for_cpp
from recorded import read

SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "2"}
# What a recorded pair takes longer at most: in reads of the processor's counter, or where these are quick.
MOST_READS = 4
MOST_NS = 30 * 1.1


def allocating(torch_folders, size: int, **variables) -> Process:
    process = pairs_of(*torch_folders, **variables, **SETTINGS, LD_PRELOAD=for_cpp()["LD_PRELOAD"])
    process.ask(f"requests {size}")
    return process


def peak_kib(process: Process) -> int:
    lines = Path(f"/proc/{process.process.pid}/status").read_text().splitlines()
    return int(next(it.split()[1] for it in lines if it.startswith("VmHWM")))


@pytest.mark.fork_wheel
def test_what_comes_faster_than_it_is_written_is_counted_and_memory_is_bounded(torch_folders, tmp_path):
    file = tmp_path / "trace.jsonl"
    count, turns = 100_000, 20
    with allocating(torch_folders, 64 << 10, BUDDY_TRACE=file) as program:
        program.ask("pairs 100")
        before = peak_kib(program)
        for _ in range(turns):
            program.ask(f"pairs {count}")
        grown = peak_kib(program) - before
    _, events = read(file)
    counts = Counter(event["op"] for event in events)
    lost = sum(it["events"] for it in events if it["op"] == "lost")
    # A quarter more is allocated than is measured. What has no request in the trace has no free either.
    assert counts["alloc"] + lost == (turns * count + 100) * 5 // 4
    assert lost > 0 and counts["alloc"] > 10_000
    assert counts["free"] == counts["alloc"]
    assert grown < 32 << 10, f"{grown} KiB"


@pytest.mark.timing
@pytest.mark.slow("a figure of a release: what recording costs")
@pytest.mark.parametrize("size", [64 << 10, 8 << 20])
def test_what_a_recorded_pair_costs(torch_folders, tmp_path, size):
    """So few pairs a turn that no ring is full, and rests in which they are drained.

    It takes two reads of the processor's counter, of 9 to 20 ns each as machines go: the measure is such a read, which
    a busy neighbour makes slower, too.
    """
    count, rounds = 2000, 8
    reads, allowed = [], []
    for _ in range(rounds):
        with (
            allocating(torch_folders, size) as off,
            allocating(torch_folders, size, BUDDY_TRACE=tmp_path / "{pid}") as on,
        ):
            for process in (off, on):
                process.ask(f"pairs {count}")
            elsewhere(on.process.pid)
            longer, read_ns = [], []
            for _ in range(50):
                time.sleep(0.012)
                without = off.number(f"pairs {count}")
                recorded = on.number(f"pairs {count}")
                read_ns.append(off.number(f"reads {count}"))
                longer.append((recorded - without) / read_ns[-1])
        reads.append(statistics.median(longer))
        allowed.append(max(MOST_READS, MOST_NS / statistics.median(read_ns)))
    allowed = statistics.median(allowed)
    assert at_least(reads) <= allowed, f"longer by so many reads, {allowed:.2f} allowed: {reads}"


def elsewhere(pid: int) -> None:
    """Lets the recorder's thread run on any core: it inherited that of the program, which has one."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == "pinbuddy-record":
            os.sched_setaffinity(int(task.name), os.sched_getaffinity(0))
