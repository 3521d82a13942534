"""A block is not handed out again while a copy may still read or write it (I4).

The simulator runs a copy when its stream gets there, so a source that is overwritten too early
shows on the device; `hold` stops a stream for as long as a test needs.
"""

import pinbuddy
import pytest
from conftest import BLOCK_MB, BLOCKS, MIB
from program import engine_segment, hold, let_go
from release import host_stats
from table import answers

pytestmark = pytest.mark.release

SIZE = 8 * MIB


def span(tensor):
    return tensor.data_ptr(), tensor.data_ptr() + tensor.numel()


def overlap(one, other):
    return one[0] < other[1] and other[0] < one[1]


def test_the_simulator_shows_a_source_that_is_overwritten_too_early(torch, pinned):
    """The control: without it, the tests below could pass whatever the allocator did."""
    source = pinned(SIZE).fill_(1)
    hold()
    on_device = source.to("cuda", non_blocking=True)
    source.fill_(2)
    let_go()
    assert bool((on_device.cpu() == 2).all())


def test_a_freed_destination_is_not_handed_out_before_its_copy_has_run(torch, pinned):
    on_device = torch.full((SIZE,), 1, dtype=torch.uint8).cuda()
    destination = pinned(SIZE)
    hold()
    destination.copy_(on_device, non_blocking=True)
    del destination
    others = [pinned(SIZE).fill_(2) for _ in range(12)]
    let_go()
    assert all(bool((other == 2).all()) for other in others)


def test_a_block_waits_for_every_stream_that_used_it(torch, pinned):
    source = pinned(SIZE).fill_(1)
    used = span(source)
    quick, slow = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(slow):
        hold()
        late = source.to("cuda", non_blocking=True)
    with torch.cuda.stream(quick):
        source.to("cuda", non_blocking=True)
    del source
    quick.synchronize()
    others = [pinned(SIZE).fill_(2) for _ in range(12)]
    assert not any(overlap(used, span(other)) for other in others)
    let_go()
    assert bool((late.cpu() == 1).all())


def test_a_held_stream_delays_its_own_blocks_only_and_they_come_back_once_their_copies_have_run(torch, pinned):
    """Stock stops at the first event that is not ready (pytorch/pytorch#183501)."""
    held, free = pinned(SIZE), pinned(SIZE)
    held_span, free_span = span(held), span(free)
    stuck, other = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(stuck):
        hold()
        held.to("cuda", non_blocking=True)
    del held
    with torch.cuda.stream(other):
        free.to("cuda", non_blocking=True)
    del free
    other.synchronize()
    # Any request reaps completed events.
    again = [pinned(SIZE) for _ in range(12)]
    assert pinbuddy.stats()["engine"]["pending_blocks"]["current"] == 1
    assert any(overlap(free_span, span(it)) for it in again)
    let_go()
    again += [pinned(SIZE) for _ in range(20)]
    assert any(overlap(held_span, span(it)) for it in again)
    assert pinbuddy.stats()["engine"]["pending_blocks"]["current"] == 0


def test_nothing_is_pinned_while_any_of_many_streams_is_done_with_a_block(torch, pinned):
    # Else one of the segments may be pinned in the background after they were counted.
    pinbuddy.warm_up(wait=True)
    size = BLOCK_MB * MIB // 8
    blocks = [pinned(size) for _ in range(8 * BLOCKS)]
    calls = host_stats()["num_host_alloc"]
    on_device = torch.zeros(size, dtype=torch.uint8, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(8)]
    for place, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            if place < 7:
                hold()
            on_device.copy_(blocks.pop(), non_blocking=True)
    streams[7].synchronize()
    again = pinned(size)
    assert host_stats()["num_host_alloc"] == calls and engine_segment(again)


@pytest.mark.parametrize("alias", ["itself", "below the threshold", "from_blob", "storage_view"])
def test_a_freed_source_is_not_handed_out_before_its_copy_has_run_through_whatever_alias(torch, pinned, alias):
    below = alias == "below the threshold"
    size = 64 * 1024 if below else SIZE
    seen = source = pinned(size).fill_(1)
    used = span(source)
    assert (engine_segment(source) is None) == below
    if alias == "from_blob":
        import ctypes

        # A foreign context with our address: the block is found by its pointer.
        buffer = (ctypes.c_uint8 * SIZE).from_address(source.data_ptr())
        seen = torch.frombuffer(buffer, dtype=torch.uint8)
    elif alias == "storage_view":
        seen = source.view(torch.int32)
    hold()
    on_device = seen.to("cuda", non_blocking=True)
    del seen, source
    assert below or pinbuddy.stats()["engine"]["pending_blocks"]["current"] == 1
    others = [pinned(size).fill_(2) for _ in range(12)]
    assert not any(overlap(used, span(other)) for other in others)
    let_go()
    assert bool((on_device.cpu().view(torch.uint8) == 1).all())


def test_an_idle_segment_stays_while_a_copy_is_outstanding(torch, pinned):
    source = pinned(SIZE).fill_(1)
    hold()
    on_device = source.to("cuda", non_blocking=True)
    del source
    torch._C._host_emptyCache()
    assert len(pinbuddy.stats()["segments"]) == 1
    let_go()
    assert bool((on_device.cpu() == 1).all())
    torch._C._host_emptyCache()
    assert pinbuddy.stats()["segments"] == []


test_streams = answers({
    # All streams are queried in turn, so finished blocks return. The simulator counts calls where one of them is to fail.
    "a request asks one busy stream and not each": ("""
    use_gpu()
    queries = lambda: sim()["calls"]["cudaEventQuery"]
    on_device = torch.zeros(8 * MIB, dtype=torch.uint8, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(24)]
    pinned(12), pinned(12)
    for stream in streams:
        with torch.cuda.stream(stream):
            hold()
            on_device.copy_(pinned(8), non_blocking=True)
    before = queries()
    for _ in range(100):
        pinned(12)
    asked = queries() - before
    pending = pinbuddy.stats()["engine"]["pending_blocks"]["current"]
    let_go()
    for _ in range(len(streams)):
        pinned(12)
    answer(0 < asked <= 100, pending, pinbuddy.stats()["engine"]["pending_blocks"]["current"])
    """, [True, 24, 0], {"BUDDY_BLOCK_SIZE_MB": 256, "PINBUDDY_SIM_FAULTS": "cudaEventQuery:1000000=1"}),
    # pinned_use_background_threads: below the threshold a thread of PyTorch's asks for events.
    "with PyTorch's background thread blocks wait and come back": ("""
    use_gpu()
    results = []
    for mib in (8, 0.25):
        source = pinned(mib).fill_(1)
        address = source.data_ptr()
        hold()
        on_device = source.to("cuda", non_blocking=True)
        del source
        others = [pinned(mib).fill_(2) for _ in range(8)]
        early = any(it.data_ptr() == address for it in others)
        let_go()
        whole = bool((on_device.cpu() == 1).all())
        time.sleep(0.05)
        more = [pinned(mib) for _ in range(8)]
        results.append([early, whole, any(it.data_ptr() == address for it in more)])
    answer(*results)
    """, [[False, True, True]] * 2, {"PYTORCH_ALLOC_CONF": "pinned_use_background_threads:True"}),
}, BUDDY_BLOCK_SIZE_MB=64, BUDDY_BLOCK_COUNT=1, BUDDY_WARMUP="sync")


def test_an_address_that_is_nobodys_is_no_trouble(torch, pinned):
    """Pageable memory, and memory that was registered by other means, go to the device as ever."""
    foreign = torch.full((SIZE,), 3, dtype=torch.uint8)
    assert torch.cuda.cudart().cudaHostRegister(foreign.data_ptr(), SIZE, 0) == 0
    on_device = foreign.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    assert torch.cuda.cudart().cudaHostUnregister(foreign.data_ptr()) == 0
    assert bool((on_device.cpu() == 3).all())
    assert bool((torch.full((SIZE,), 4, dtype=torch.uint8).to("cuda").cpu() == 4).all())
    assert pinbuddy.stats()["engine"]["pending_blocks"]["current"] == 0
