"""Planned device memory asked for by several threads at once: on one stream and on streams of their own, with streams that use one
another's blocks, and caches that are emptied meanwhile. The program looks whether anybody else writes to a block."""

import pytest

THREADS = 3

HEAD = f"""
    PAGE, THREADS = 4096, {THREADS}
    import random
    streams = [torch.cuda.Stream() for _ in range(1 if os.environ["STREAMS"] == "shared" else THREADS)]
    def sizes_of(number):
        draw = random.Random(number)
        return [draw.randrange(MIB + 1, 6 * MIB) / MIB for _ in range(12)]
    # Streams are numbered by their first requests.
    for stream in streams:
        with torch.cuda.stream(stream):
            block(2)
"""
# The same, by one thread after the other.
RECORD = HEAD + """
    for step in range(30):
        for number in range(THREADS):
            with torch.cuda.stream(streams[number % len(streams)]):
                live = []
                for at, size in enumerate(sizes_of(number)):
                    live.append(block(size))
                    if at % 4 == 3:
                        del live[at % len(live)]
                del live
"""
# Each thread keeps some blocks for a while and writes their ends, on the stream that it asked on.
PROGRAM = HEAD + """
    marks = [torch.full((PAGE,), mark, dtype=torch.uint8).pin_memory() for mark in range(100)]
    ended, turns = [], threading.Barrier(THREADS)

    def work(number):
        stream, other = streams[number % len(streams)], torch.cuda.Stream()
        out = torch.empty(PAGE, dtype=torch.uint8, pin_memory=True)
        def check(tensor, mark):
            for part in (tensor[:PAGE], tensor[-PAGE:]):
                out.copy_(part, non_blocking=True)
                stream.synchronize()
                assert torch.equal(out, marks[mark]), [number, tensor.numel(), mark]
        for step in range(12):
            if step % 4 == 0:
                # So that they run at once.
                turns.wait(120)
            live = []
            for at, size in enumerate(sizes_of(number)):
                mark, tensor = (number * 25 + step + at) % 100, block(size)
                tensor[:PAGE].copy_(marks[mark], non_blocking=True)
                tensor[-PAGE:].copy_(marks[mark], non_blocking=True)
                live.append((tensor, mark))
                if at % 4 == 3:
                    check(*live.pop(at % len(live)))
                if at % 6 == 5:
                    tensor, mark = live.pop(0)
                    check(tensor, mark)
                    other.wait_stream(stream)
                    with torch.cuda.stream(other):
                        # Read late: nobody may have the place before.
                        torch.cuda._sleep(200_000)
                        late = tensor[:PAGE].to("cpu", non_blocking=True)
                    tensor.record_stream(other)
                    del tensor
                    if step % 3 == 0:
                        other.synchronize()
                        assert torch.equal(late, marks[mark]), [number, "late", mark]
            if os.environ["CLEAR"] == "yes" and step % 4 == number:
                torch.cuda.empty_cache()
            for it in live:
                check(*it)
            tensor = live = None

    def watched(number):
        with torch.cuda.stream(streams[number % len(streams)]):
            if error := refused(lambda: work(number)):
                turns.abort()
        ended.append(error)

    def reports():
        while len(ended) < THREADS:
            torch.cuda.memory_stats()
            torch.cuda.memory_snapshot()
            time.sleep(0.05)

    together(reports, *[lambda number=number: watched(number) for number in range(THREADS)])
    torch.cuda.synchronize()
    device = pinbuddy.stats()["device"]
    torch.cuda.empty_cache()
    # What was freed for another stream is settled, and nothing lives.
    stats = torch.cuda.memory_stats()
    ends = [stats[name + ".all.current"] for name in ("allocation", "active", "allocated_bytes", "requested_bytes")]
    answer(ended, ends, torch.cuda.memory_reserved(), device)
"""


@pytest.mark.parametrize("streams", ["shared", "own"])
def test_threads_share_a_plan(run, tmp_path, streams):
    settings = {"BUDDY_DEVICE_PLAN": str(tmp_path / "device.json"), "STREAMS": streams}
    run(RECORD, **settings)
    for clear in ("no", "yes"):
        ended, ends, reserved, device = run(PROGRAM, CLEAR=clear, **settings).value
        assert ended == [None] * THREADS and ends == [0] * 4, (ended, ends)
        assert reserved < 4 << 20, "the regions are given back, all but what is small"
        assert len(device) == (1 if streams == "shared" else THREADS), device
        assert sum(it["hits"] + it["borrowed"] for it in device) > 100, device
