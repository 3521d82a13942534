"""Planned device memory asked for by several threads at once: on one stream and on streams of their own, with streams that use one
another's blocks, and caches that are emptied meanwhile. The program looks whether anybody else writes to a block."""

import pytest


THREADS, STEPS = 3, 12

# Streams are numbered by their first requests.
HEAD = f"""
    import json, os, random, threading, torch, pinbuddy
    MIB, PAGE, THREADS = 1 << 20, 4096, {THREADS}
    shared = os.environ["STREAMS"] == "shared"
    streams = [torch.cuda.Stream() for _ in range(1 if shared else THREADS)]
    def sizes_of(number):
        draw = random.Random(number)
        return [draw.randrange(MIB + 1, 6 * MIB) for _ in range(12)]
    def block(size):
        return torch.empty(size, dtype=torch.uint8, device="cuda")
    for stream in streams:
        with torch.cuda.stream(stream):
            block(2 * MIB)
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
PROGRAM = HEAD + f"""
    plain = os.environ["CLEAR"] == "no"
    marks = [torch.full((PAGE,), mark, dtype=torch.uint8).pin_memory() for mark in range(100)]
    others = [torch.cuda.Stream() for _ in range(THREADS)]
    failed, turns = [], threading.Barrier(THREADS)

    def work(number):
        sizes, stream, other = sizes_of(number), streams[number % len(streams)], others[number]
        out = torch.empty(PAGE, dtype=torch.uint8, pin_memory=True)
        def check(tensor, mark):
            for part in (tensor[:PAGE], tensor[-PAGE:]):
                out.copy_(part, non_blocking=True)
                stream.synchronize()
                if not torch.equal(out, marks[mark]):
                    failed.append([number, tensor.numel(), mark])
        with torch.cuda.stream(stream):
            for step in range({STEPS}):
                if step % 4 == 0:
                    # So that they run at once.
                    turns.wait(120)
                live = []
                for at, size in enumerate(sizes):
                    mark = (number * 25 + step + at) % 100
                    tensor = block(size)
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
                            if not torch.equal(late, marks[mark]):
                                failed.append([number, "late", mark])
                if not plain and step % 4 == number:
                    torch.cuda.empty_cache()
                for it in live:
                    check(*it)
                tensor = live = None

    def watched(number):
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001: a thread's failure is the test's
            failed.append(repr(error))
            turns.abort()

    threads = [threading.Thread(target=watched, args=[number]) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        # Reports beside all of that.
        stats = torch.cuda.memory_stats()
        torch.cuda.memory_snapshot()
        threads[0].join(0.05)
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    device = pinbuddy.stats()["device"]
    torch.cuda.empty_cache()
    # What was freed for another stream is settled, and nothing lives.
    stats = torch.cuda.memory_stats()
    ends = [stats[name + ".all.current"] for name in ("allocation", "active", "allocated_bytes", "requested_bytes")]
    print(json.dumps([failed[:5], ends, torch.cuda.memory_reserved(), device]))
"""


@pytest.mark.parametrize("streams", ["shared", "own"])
def test_threads_share_a_plan(run, tmp_path, streams):
    path = str(tmp_path / "device.json")
    run(RECORD, BUDDY_DEVICE_PLAN=path, STREAMS=streams)
    for clear in ("no", "yes"):
        failed, ends, reserved, device = run(PROGRAM, BUDDY_DEVICE_PLAN=path, STREAMS=streams, CLEAR=clear).value
        assert failed == [] and ends == [0] * 4, (failed, ends)
        assert reserved < 4 << 20, "the regions are given back, all but what is small"
        assert len(device) == (1 if streams == "shared" else THREADS), device
        assert sum(it["hits"] + it["borrowed"] for it in device) > 100, device
