"""Private (graph-capture) pools never receive engine memory (I6), and captures are not disturbed.

Each test is a program of its own: what a capture has read is never handed out again.
"""

from table import answers

SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "1", "BUDDY_WARMUP": "sync"}

HEAD = """
    on_device = torch.zeros(8 * MIB, dtype=torch.uint8, device="cuda")
    graph = torch.cuda.CUDAGraph()
"""

test_a_capture = answers({
    # A graph reads its source at every replay, and no event tells when the last one is over.
    "a block that a capture reads is not handed out again": (HEAD + """
    source = pinned(8).fill_(1)
    engines, start = of_engine(source), source.data_ptr()
    with torch.cuda.graph(graph):
        on_device.copy_(source, non_blocking=True)
        del source
    others = [pinned(8).fill_(2) for _ in range(12)]
    again = any(other.data_ptr() == start for other in others)
    graph.replay()
    torch.cuda.synchronize()
    whole = bool((on_device.cpu() == 1).all())
    del others
    torch._C._host_emptyCache()
    print(json.dumps([engines, again, whole, pinbuddy.stats()["engine"]["pending_blocks"]["current"]]))
    """, [True, False, True, 1]),
    "pins and reaping on another thread leave a capture whole": (HEAD + """
    warm = pinned(8)
    warm.to("cuda", non_blocking=True)
    source = torch.ones(1000, pin_memory=True)
    small = torch.zeros(1000, device="cuda")
    del warm
    def grow():
        # The request reaps an event, then grows the pool.
        kept = [pinned(8) for _ in range(12)]
    with torch.cuda.graph(graph):
        small.copy_(source, non_blocking=True)
        together(grow)
    graph.replay()
    torch.cuda.synchronize()
    # It grew.
    answer(bool((small.cpu() == 1).all()), len(pinbuddy.stats()["segments"]) >= 2)
    """, [True, True]),
    # empty_cache inside a capture releases idle segments and does not disturb the capture; nor does deleting the
    # graph and its pool.
    "what a capture allocates is not the engine's whatever is cleared and released": (HEAD + """
    # Entering a capture already clears the cache; a block that another thread uses then is new.
    with torch.cuda.graph(graph):
        inside = pinned(8)
        on_device.copy_(inside, non_blocking=True)
        together(lambda: pinned(8))
        before = len(pinbuddy.stats()["segments"])
        torch._C._host_emptyCache()
        during = len(pinbuddy.stats()["segments"])
    whose = [inside.is_pinned(8), of_engine(inside), of_engine(pinned(8))]
    seen = []
    for mark in (1, 2):
        inside.fill_(mark)
        graph.replay()
        torch._C._host_emptyCache()
        torch.cuda.synchronize()
        seen.append(bool((on_device.cpu() == mark).all()))
    del inside
    graph.reset()
    del graph
    torch._C._host_emptyCache()
    left = host_stats()["allocated_bytes.current"]
    again = pinned(8).fill_(3)
    # Upstream keeps only the blocks that the capture allocated and used.
    answer(whose, before, during, seen, left <= 8 << 20, of_engine(again), bool((again == 3).all()))
    """, [[True, False, True], 1, 0, [True, True], True, True, True]),
    "a warm up in the background leaves a capture whole": (HEAD + """
    source = pinned(8).fill_(4)
    with torch.cuda.graph(graph):
        on_device.copy_(source, non_blocking=True)
        pinbuddy.warm_up(wait=True)
        warm = len(pinbuddy.stats()["segments"])
    graph.replay()
    torch.cuda.synchronize()
    print(json.dumps([warm, bool((on_device.cpu() == 4).all())]))
    """, [3, True], {"BUDDY_BLOCK_COUNT": 3, "BUDDY_WARMUP": "off"}),
}, **SETTINGS)
