"""empty_cache, under each of its names, releases wholly idle segments, and nobody waits for it."""

import pytest
from conftest import needs

SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_BLOCK_COUNT": "4", "PINBUDDY_SIM_LOCK": "0"}


@pytest.mark.parametrize("clear", [
    pytest.param("torch.accelerator.empty_host_cache()", marks=needs(12, "a name for it in public")),
    "torch._C._host_emptyCache()",
    "pinbuddy.empty_cache()",
])
def test_every_way_of_clearing(run, clear):
    assert run(f"""
        use_gpu()
        kept = pinned(8)
        pinned(0.5)
        sizes = [host_stats()["allocated_bytes.current"] / MIB]
        for _ in range(2):
            assert {clear} is None
            kept = None
            sizes.append(host_stats()["allocated_bytes.current"] / MIB)
        answer(*sizes)
        """, **SETTINGS, BUDDY_WARMUP="sync").value == [256.5, 64, 0]


@pytest.mark.simulated("a driver itself may let a pin wait for an unpin")
def test_nobody_waits_for_a_lock_while_memory_is_unpinned(run):
    """I5, below the threshold too: stock frees under its pool's lock, so that others wait."""
    program = """
    use_gpu()
    # Two cached blocks below the threshold, in one bucket. Freeing pinned memory waits for the GPU.
    [pinned(0.06), pinned(0.06)]
    torch.cuda._sleep(1_500_000_000)
    clearing = threading.Thread(target=torch._C._host_emptyCache)
    clearing.start()
    time.sleep(0.2)
    waited = seconds(lambda: pinned(0.06))
    answer(waited, clearing.is_alive())
    """
    waited, unpinning = run(program, **SETTINGS).value
    assert unpinning and waited < 0.5
    # Control: with stock the same request waits until the memory is freed.
    waited, _ = run(program, "stock", PINBUDDY_SIM_LOCK=0).value
    assert waited > 0.5
