"""How pins in place end: with their storage, with a block, beside other threads, copies, captures and children."""

import pytest
from in_place import START

pytestmark = pytest.mark.release


def test_a_storage_that_goes_during_a_copy_waits_for_it(run):
    outcome = run(
        START
        + """
tensor = pinbuddy.pin_(torch.full((40 << 20,), 7, dtype=torch.uint8))
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


def test_parts_of_a_pinned_file_are_pinned_and_their_copies_waited_for(run):
    outcome = run(
        START
        + """
mapped = torch.UntypedStorage.from_file(FILE, False, 4 * N)
whole = torch.asarray(mapped, dtype=torch.uint8)
part = torch.asarray(mapped[5000:900_001], dtype=torch.uint8)
pinbuddy.pin_(whole)
are = part.is_pinned(), refused(lambda: pinbuddy.unpin_(part))[0]
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    torch.cuda._sleep(300_000_000)
    copy = part.to("cuda", non_blocking=True)
busy = not stream.query()
pinbuddy.unpin_(whole)
answer(are, busy, stream.query(), part.is_pinned(), state() == NONE, bool((copy.cpu() == part).all()))
""",
        PINBUDDY_SIM_HAZARDS=1,
        PINBUDDY_SIM_LOCK=0,
    )
    assert outcome.value == [[True, "RuntimeError"], True, True, False, True, True]
    assert "hazard" not in outcome.stderr


def test_other_threads_run_while_a_storage_that_goes_waits(run):
    outcome = run(
        START
        + """
tensor = pinbuddy.pin_(torch.zeros(1 << 20, dtype=torch.uint8).share_memory_())
heap = pinbuddy.pin_(torch.zeros(40 << 20, dtype=torch.uint8))
ticks, stop = 0, False
def tick():
    global ticks
    while not stop:
        ticks += 1
        time.sleep(0.001)
thread = threading.Thread(target=tick)
thread.start()
def while_it_goes(name):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(500_000_000)
        copy = globals()[name].to("cuda", non_blocking=True)
    before = ticks
    busy = not stream.query()
    del globals()[name]
    return busy, stream.query(), ticks - before > 20
both = [while_it_goes(name) for name in ("tensor", "heap")]
stop = True
thread.join()
answer(both, state() == NONE)
""",
        PINBUDDY_SIM_LOCK=0,
    )
    assert outcome.value == [[[True, True, True]] * 2, True]


def test_threads_that_pin_one_storage_share_its_pin(run):
    outcome = run(
        START
        + """
def race(tensor):
    start = threading.Barrier(4)
    def pin():
        start.wait()
        pinbuddy.pin_(tensor)
    threads = [threading.Thread(target=pin) for _ in range(4)]
    for it in threads:
        it.start()
    for it in threads:
        it.join()
    held = state()["registered"]
    for _ in range(4):
        assert tensor.is_pinned()
        pinbuddy.unpin_(tensor)
    return held, tensor.is_pinned(), refused(lambda: pinbuddy.unpin_(tensor))[0]
outcomes = [race(torch.zeros(1 << 16, dtype=torch.uint8).share_memory_()) for _ in range(20)]
answer(outcomes == [(1, False, "RuntimeError")] * 20, state() == NONE)
""",
        PINBUDDY_SIM_LOCK=0,
    )
    assert outcome.value == [True, True]


def test_a_capture_sees_no_pin_begin_or_end(run):
    outcome = run(
        START
        + """
one, other, third = (torch.full((1 << 20,), 7, dtype=torch.uint8).share_memory_() for _ in range(3))
pinbuddy.pin_(one)
pinbuddy.pin_(other)
used = torch.cuda.Stream()
with torch.cuda.stream(used):
    torch.cuda._sleep(100_000_000)
    copies = [it.to("cuda", non_blocking=True) for it in (one, other)]
graph, on_device = torch.cuda.CUDAGraph(), torch.zeros(8, device="cuda")
with torch.cuda.graph(graph, capture_error_mode="global"):
    on_device += 1
    pinbuddy.unpin_(one)
    del other
    pinbuddy.pin_(third)
graph.replay()  # A capture that is broken off cannot be.
torch.cuda.synchronize()
answer(one.is_pinned(), third.is_pinned(), state()["registered"], bool((copies[1].cpu() == 7).all()))
""",
        PINBUDDY_SIM_HAZARDS=1,
        PINBUDDY_SIM_LOCK=0,
    )
    assert outcome.value == [False, True, 1, True]
    assert "hazard" not in outcome.stderr


def test_a_block_ends_its_pins_whatever_it_has_done(run):
    outcome = run(
        START
        + """
def shared():
    return torch.zeros(1 << 20, dtype=torch.uint8).share_memory_()
tensor, other = shared(), torch.zeros(40 << 20, dtype=torch.uint8)
with pinbuddy.pinned(tensor, other):
    other.untyped_storage().resize_(0)
    replaced = state()["registered"]
after = state() == NONE
with pinbuddy.pinned(tensor):
    pinbuddy.unpin_(tensor)
    pinbuddy.pin_(tensor)
kept = tensor.is_pinned()
pinbuddy.unpin_(tensor)
def raises():
    with pinbuddy.pinned(tensor):
        raise ValueError("of the block")
answer(replaced, after, kept, refused(raises), state() == NONE)
""",
        PINBUDDY_SIM_LOCK=0,
    )
    assert outcome.value == [1, True, True, ["ValueError", "of the block"], True]


def test_a_child_unregisters_nothing(run):
    outcome = run(
        START
        + """
kept = pinbuddy.pin_(torch.zeros(40 << 20, dtype=torch.uint8))
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
