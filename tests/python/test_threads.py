"""Many threads at once: no block has two owners, counters add up, nothing hangs."""

import threading
from pathlib import Path

import native
import pinbuddy
import pytest
from conftest import MIB, interpreter
from measure import torch_folder
from plugin import for_cpp

pytestmark = pytest.mark.release

THREADS = 16
STRESS = Path(__file__).parent.parent / "stress"


def together(torch, works):
    """Runs each function in a thread of its own; returns what went wrong."""
    failures = []

    def guarded(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001: a thread's failure is the test's
            failures.append(repr(error))

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=240)
        assert not thread.is_alive(), "a thread never came back"
    return failures


def test_sixteen_threads_get_blocks_of_their_own(torch, pinned):
    def work(mark):
        def run():
            stream = torch.cuda.Stream()
            for i in range(25):
                tensor = pinned((1 + (mark + i) % 5) * MIB + mark * 4096).fill_(mark)
                small = pinned(64 * 1024).fill_(mark)
                with torch.cuda.stream(stream):
                    on_device = tensor.to("cuda", non_blocking=True)
                assert bool((tensor == mark).all()) and bool((small == mark).all())
                del tensor
                stream.synchronize()
                assert bool((on_device.cpu() == mark).all()), "reused too early"

        return run

    assert together(torch, [work(mark) for mark in range(1, THREADS + 1)]) == []
    torch.cuda.synchronize()
    pinned(MIB)
    assert pinbuddy.stats()["engine"]["active_blocks"]["current"] == 0


def test_blocks_of_one_thread_freed_on_another_beside_clearing_and_counting(torch, pinned):
    """Eight threads allocate, eight free, one clears, one reads the statistics."""
    import queue

    handed = queue.Queue(maxsize=64)
    working = threading.Event()
    working.set()

    def make(mark):
        def run():
            for i in range(60):
                handed.put((pinned((1 + (mark * i) % 7) * MIB).fill_(mark), mark))

        return run

    def drop():
        while True:
            item = handed.get()
            if item is None:
                return
            tensor, mark = item
            assert bool((tensor == mark).all()), "another thread wrote here"
            del item, tensor

    def clear():
        while working.is_set():
            torch._C._host_emptyCache()

    def count():
        while working.is_set():
            engine = pinbuddy.stats()["engine"]
            used = engine["active_bytes"]["current"]
            assert used + engine["idle_bytes"] == engine["pinned_bytes"]["current"]
            torch.cuda.host_memory_stats()

    def all_makers():
        failed = together(torch, [make(mark) for mark in range(1, 9)])
        for _ in range(8):
            handed.put(None)
        assert failed == []

    def all_droppers():
        failed = together(torch, [drop] * 8)
        working.clear()
        assert failed == []

    assert together(torch, [all_makers, all_droppers, clear, count]) == []
    torch._C._host_emptyCache()
    stats = pinbuddy.stats()
    assert stats["state"] == "on"
    assert stats["engine"]["pinned_bytes"]["current"] == 0, "all of it came back"


def test_threads_that_all_come_first(run):
    """Sixteen first requests at once, with a warm-up behind them."""
    outcome = run("""
        from program import *
        torch.cuda.init()
        gate, kept = threading.Barrier(16), [None] * 16
        def work(i):
            gate.wait()
            kept[i] = pinned(9).fill_(i)
        together(*(lambda i=i: work(i) for i in range(16)))
        until(lambda: warm_up()["phase"] == "done")
        whole = all(bool((it == i).all()) for i, it in enumerate(kept))
        answer(whole, all(of_engine(it) for it in kept), sum(segments()))
        """, BUDDY_BLOCK_SIZE_MB=64, BUDDY_BLOCK_COUNT=4)
    whole, of_engine, total = outcome.value
    # Four blocks in all, or nearly, with what the sixteen pinned for themselves.
    assert whole and of_engine and 3 * 64 < total < 5 * 64
    assert outcome.warnings == []


def stress(name: str, *arguments: int, **variables):
    """Runs a stress program with the library that is tested."""
    program = native.program(STRESS / f"{name}.cpp", torch_folder(interpreter("stock")), "-O2", "-pthread")
    return native.run(program, *arguments, **for_cpp(), **variables)


@pytest.mark.parametrize("threads, threshold", [(1, 1), (4, 0), (16, 1)])
def test_blocks_stay_whole_while_threads_hand_over_clear_and_count(threads, threshold):
    """In C++, without the interpreter's lock: contents, events, counters."""
    done = stress("blocks", threads, 3000, threads, BUDDY_THRESHOLD_MB=threshold, BUDDY_BLOCK_SIZE_MB=64, BUDDY_BLOCK_COUNT=2)
    assert (done.returncode, done.stdout.strip()) == (0, str(threads * 3000)), done.stderr


@pytest.mark.parametrize("kib", [64, 16 * 1024])
@pytest.mark.parametrize("live", [4, 8])
def test_threads_that_share_a_few_blocks_never_pin_more_than_these(live, kib):
    """Below the threshold and above it, with regions for one block or for a few: a thread finds what another has
    freed, wherever it is cached."""
    settings = {"BUDDY_BLOCK_SIZE_MB": 64, "BUDDY_WARMUP": "off"}
    done = stress("bounded", live, 300_000, kib * 1024, **settings)
    before, after = map(int, done.stdout.split())
    assert before == after and live // 4 <= before <= live, done.stderr
    if kib == 64:
        assert before == live, "stock's"


@pytest.mark.parametrize("kib", [64, 16 * 1024])
def test_reading_statistics_beside_busy_threads_pins_nothing(kib):
    """A reader's flush must not look like a lack of room to other threads."""
    live = 4
    done = stress("bounded", live, 10_000_000, kib * 1024, 1, BUDDY_BLOCK_SIZE_MB=64, BUDDY_WARMUP="off")
    before, after = map(int, done.stdout.split())
    assert before == after and before <= live, done.stderr
