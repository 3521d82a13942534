"""Second runs of programs as people write them, with no threshold set: nothing is pinned after the warm-up."""

import json

import pytest
from plans import MIB, write

# A training with small requests among large ones. STEPS: what its loop does besides.
PROGRAM = """
    steps = os.environ.get("STEPS", "").split()
    stats = torch.cuda.host_memory_stats
    images = Items(24, lambda index: torch.full((16, 1024), index, dtype=torch.uint8))
    def ask(size):
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)
    def evaluate():
        for at in range(6):
            large, small = ask((3 + at % 3) << 20), ask(700 + at)
            large.to("cuda", non_blocking=True)
            torch.cuda.synchronize()
            del large, small
    torch.cuda.init()
    pinbuddy.warm_up(wait=True)
    warm = stats()["num_host_alloc"]
    kept = [ask(1000), ask(5 << 20)]
    seen = set()
    for iteration in range(8):
        if "workers" in steps:
            loader = torch.utils.data.DataLoader(images, batch_size=4, num_workers=2, pin_memory=True)
            for batch in loader:
                assert batch.is_pinned() and bool((batch == batch[:, :1, :1]).all())
                batch.to("cuda", non_blocking=True)
                seen.update(int(it) for it in batch[:, 0, 0])
                torch.cuda.synchronize()
        for large, small in [(6 << 20, 4096), (8 << 20, 100), (2 << 20, 64 << 10), (1 << 20, 8)]:
            tensors = [ask(large).fill_(7), ask(small).fill_(9)]
            for tensor in tensors:
                tensor.to("cuda", non_blocking=True)
            torch.cuda.synchronize()
            assert bool((tensors[0] == 7).all()) and bool((tensors[1] == 9).all())
            del tensor, tensors
        if "evaluation" in steps and iteration % 3 == 2:
            evaluate()
        if "clear" in steps:
            torch._C._host_emptyCache()
    if "workers" in steps:
        assert seen == set(range(24))
    print(json.dumps({"plan": pinbuddy.stats()["plan"], "pins": stats()["num_host_alloc"] - warm}))
"""

# So that nothing is pinned ahead in the first run.
SETTINGS = {"BUDDY_BLOCK_COUNT": "0"}


@pytest.mark.parametrize("steps", ["", "workers evaluation clear"])
def test_small_requests_are_planned_and_nothing_is_pinned_after_the_warm_up(run, plan, steps):
    first = run(PROGRAM, BUDDY_PLAN=str(plan), STEPS=steps, **SETTINGS).quiet.value
    assert first["pins"] > 0
    made = json.loads(plan.read_text())
    assert made["threshold"] == 0
    assert min(size for size, *_ in made["slots"]) == 4096, "small requests have slots, too"
    second = run(PROGRAM, BUDDY_PLAN=str(plan), STEPS=steps, **SETTINGS).quiet.value
    counts = second["plan"]
    asked = counts["hits"] + counts["misses"] + counts["unplanned"]
    # A loader's own thread is ahead of the program by another number of batches each time: on a busy machine 0.86 to 0.97.
    assert counts["hits"] >= (0.75 if "workers" in steps else 0.9) * asked, counts
    # A clear of the loop leaves what the loop needs again. A loader's own thread and evaluations leave the lane in doubt
    # now and then: then the clear returns what is idle, and that is pinned again.
    assert second["pins"] <= (first["pins"] // 10 + 8 if "workers" in steps else 0), second


def test_a_threshold_that_is_set_is_obeyed(run, plan):
    run(PROGRAM, BUDDY_PLAN=str(plan), BUDDY_THRESHOLD_MB="2", **SETTINGS)
    made = json.loads(plan.read_text())
    assert made["threshold"] == 2 * MIB
    assert min(size for size, *_ in made["slots"]) == 2 * MIB
    # Without a threshold the plan's is used, so that it fits.
    second = run(PROGRAM, BUDDY_PLAN=str(plan), **SETTINGS).quiet.value
    assert second["plan"]["hits"] > 0 and second["pins"] > 0, "small requests are PyTorch's"


def test_a_run_whose_plan_is_refused_has_the_default_threshold(run, plan):
    plan.write_text("{")
    threshold = "import json, torch, pinbuddy; print(json.dumps(pinbuddy.config()['BUDDY_THRESHOLD_MB']['value']))"
    assert run(threshold, BUDDY_PLAN=str(plan)).value == 4
    plan.unlink()
    assert run(threshold, BUDDY_PLAN=str(plan)).value == 4
    write(plan, [8 * MIB], [[8 * MIB, 0, 0]], [[0]], threshold=0)
    assert run(threshold, BUDDY_PLAN=str(plan)).value == 0


@pytest.mark.parametrize("evaluates", [0, 1])
def test_threads_of_more_epochs_than_were_recorded_are_planned(run, plan, evaluates):
    # A data loader pins its batches in a thread of its own, a new one in each epoch and in each evaluation.
    program = """
    def images(count, bytes):
        return Items(count, lambda index: torch.full((bytes,), index % 250, dtype=torch.uint8))
    def batches(data):
        for batch in torch.utils.data.DataLoader(data, batch_size=4, num_workers=1, pin_memory=True):
            assert batch.is_pinned() and bool((batch == batch[:, :1]).all())
            batch.to("cuda", non_blocking=True)
            yield
    torch.cuda.init()
    pinbuddy.warm_up(wait=True)
    train, evaluate = images(256, 1 << 18), images(64, 3 << 17)
    for epoch in range(int(os.environ["EPOCHS"])):
        for batch in batches(train):
            for sizes in [(6, 2), (3, 5)]:
                live = [pinned(mib) for mib in sizes]
                del live
            torch.cuda.synchronize()
        for batch in batches(evaluate) if os.environ["EVALUATES"] == "1" else []:
            torch.cuda.synchronize()
    print(json.dumps(pinbuddy.stats()["plan"]))
    """
    settings = SETTINGS | {"BUDDY_PLAN": str(plan), "EVALUATES": evaluates}
    assert run(program, EPOCHS="2", **settings).warnings == []
    made = json.loads(plan.read_text())
    # With a lane for each thread it was 1.45. Nobody knows what the program does while the loader has most batches: it is ahead,
    # in one run in six so that it is 1.27.
    assert sum(made["regions"]) <= 1.3 * made["facts"]["peak"], "threads that never live at once share memory"
    counts = run(program, EPOCHS="8", **settings).quiet.value
    asked = counts["hits"] + counts["misses"] + counts["unplanned"]
    # The thread is ahead of the program by another number of batches each time. Evaluations are a twentieth of all requests.
    assert counts["hits"] >= 0.97 * asked, counts
