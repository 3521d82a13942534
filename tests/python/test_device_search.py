"""A program that goes on after a request failed, as a search for the largest batch does: no plan is made of it, so its later runs
find what they find without one."""

import pytest

# Bisects for the largest batch of which two steps fit, then takes so many steps with it. Prints batches with what became of them.
SEARCH = """
    weights = [block(4) for _ in range(8)]
    def step(batch):
        kept = []
        for _ in range(8):
            buffer = block(batch * 5 / 2)
            kept.append(block(batch))
            del buffer
        gradients = []
        while kept:
            gradients.append(block(4))
            del kept[-1]
    def fits(batch):
        try:
            step(batch), step(batch)
            return True
        except torch.cuda.OutOfMemoryError:
            pass
        gc.collect()
        torch.cuda.empty_cache()
        return False
    tries, low, high = [], 0, 64
    while high - low > 1:
        middle = (low + high + 1) // 2
        tries.append([middle, fits(middle)])
        if tries[-1][1]:
            low = middle
        else:
            high = middle
    later = [fits(low) for _ in range(10)]
    print(json.dumps([tries, later, pinbuddy.stats()["device"]]))
"""


OTHER = pytest.mark.slow("the same search on a smaller and a larger device")


@pytest.mark.parametrize("mib", [256, pytest.param(160, marks=OTHER), pytest.param(352, marks=OTHER)])
def test_a_search_finds_the_same_batch_in_each_run(twice, run, mib):
    settings = {"PINBUDDY_SIM_DEVICE_MB": str(mib)}
    stock = run(SEARCH, BUDDY_DISABLE="1", **settings)
    failed = [batch for batch, fits in stock.value[0] if not fits]
    assert failed and all(stock.value[1])
    for outcome in twice(SEARCH, **settings):
        assert outcome.value == stock.value
        assert outcome.warnings == []
