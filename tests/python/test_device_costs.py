"""A plan that makes PyTorch reserve more than it would by itself steps aside: once, in one line, and its regions serve as room."""

from conftest import needs
from device_plans import with_plan

pytestmark = needs(11, "the calls of its device allocator that a plan stands in front of")

# A block keeps the region, and what comes beside it needs a segment each time, though little lives at once.
OTHERS = """
    kept = block(12)
    mark = torch.full(kept.shape, 7, dtype=torch.uint8)
    kept.copy_(mark)
    def others():
        for mib in (13, 14, 15, 16, 17, 18, 19, 20, 20):
            it = block(mib)
            del it
"""


def test_a_plan_that_costs_too_much_steps_aside_once(with_plan):
    outcome = with_plan(OTHERS + """
    others()
    aside = counts()["dropped"]
    # What is idle of the region serves, until its last block is freed and it is PyTorch's.
    short = block(6)
    stands = [planned(short), torch.equal(kept.cpu(), mark), counts()["reserved_bytes"] >> 20]
    del short, kept
    others()
    stands.append(counts()["reserved_bytes"] >> 20)
    print(json.dumps([aside, stands]))
    """)
    assert outcome.value == [True, [True, True, 20, 0]]
    (warning,) = outcome.warnings
    assert "the plan steps aside" in warning and "device.json" in warning


def test_what_pools_take_is_no_plan_s_cost(with_plan):
    outcome = with_plan("""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        of_the_pool = block(2)
    """ + OTHERS + """
    others()
    print(json.dumps(counts()["dropped"]))
    """)
    assert outcome.value is False
    assert outcome.warnings == []
