"""Every way to PyTorch's allocator of device memory leads to the one with the plan: torch.cuda, torch.accelerator, storages."""

import json

from conftest import needs

pytestmark = needs(12, "functions of torch.accelerator for memory that ask c10's registry")

# Asks by each way, and compares what they answer.
PROGRAM = """
    for _ in range(30):
        for mib in (12, 20, 16):
            block(mib)
    it = block(12)
    # A storage asks the registry of allocators for its own.
    storage = torch.UntypedStorage(3 * MIB, device="cuda")
    storage.resize_(5 * MIB)
    cuda, accelerator = torch.cuda, torch.accelerator
    def figures(way):
        sizes = [way.memory_allocated(), way.max_memory_allocated(), way.memory_reserved()]
        return sizes, way.memory_stats()
    def check(what):
        (one, stats), (other, others) = figures(cuda), figures(accelerator)
        shared = stats.keys() & others.keys()
        assert one == other and len(shared) > 50, (what, one, other, shared)
        assert all(stats[name] == others[name] for name in shared), (what, stats, others)
        return one
    seen = [check("live")]
    del it, storage
    seen.append(check("freed"))
    accelerator.reset_peak_memory_stats()
    seen.append(check("peaks reset"))
    accelerator.reset_accumulated_memory_stats()
    seen.append(check("sums reset"))
    accelerator.empty_cache()
    seen.append(check("emptied"))
    free, total = accelerator.get_memory_info()
    assert (free, total) == cuda.mem_get_info()
    print(json.dumps(seen))
"""


def test_the_accelerators_functions_answer_as_cudas_do(run, twice, tmp_path):
    stock = run(PROGRAM, "stock").value
    recorded, planned = (it.value for it in twice(PROGRAM))
    assert recorded == stock
    assert json.loads((tmp_path / "device.json").read_text())["plans"], "something is planned"
    # What is allocated is the same, as long as all of it are whole pages; emptying gives all of it back.
    assert [it[0] for it in planned] == [it[0] for it in stock]
    assert planned[-1] == stock[-1] == [0, 0, 0]


def test_before_cuda_is_initialised_nothing_is_asked(run, tmp_path):
    """Neither way may initialise CUDA, nor fail."""
    program = """
    ways = [torch.cuda, torch.accelerator]
    print(json.dumps([[way.memory_allocated(), way.memory_reserved(), way.empty_cache()] for way in ways]))
    """
    trace = str(tmp_path / "run.jsonl")
    assert run(program, BUDDY_DEVICE_TRACE=trace).value == run(program, "stock").value == [[0, 0, None]] * 2
