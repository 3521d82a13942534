"""`BUDDY_NUMA=auto` in a process with several GPUs, on machines of two and of four nodes that are made up.

The kernel has fewer nodes here than the made-up machine, and says so in a warning: where a region was meant to lie is
seen by the node whose devices it serves.
"""

import pytest
from plugin import ASSERTS

pytestmark = [
    pytest.mark.simulated("machines are made up"),
    pytest.mark.skipif(not ASSERTS, reason="only a library with assertions reads made-up machines"),
]

HEAD = """
def addresses(device, sizes=(1.5, 8, 20, 70)):
    # Of tensors that are gone again.
    with torch.cuda.device(device):
        return [it.data_ptr() for it in [pinned(mib) for mib in sizes]]
def nodes(found):
    # Of the regions that are still pinned: at least half of what was found lies there.
    regions = pinbuddy.stats()["segments"]
    homes = [it["home_node"] for at in found for it in regions if it["address"] <= at < it["address"] + it["bytes"]]
    assert 2 * len(homes) >= len(found), (len(homes), len(found))
    return sorted(set(homes))
"""

OFF = {"BUDDY_WARMUP": "off", "BUDDY_THRESHOLD_MB": "1", "PINBUDDY_SIM_LOCK": "0"}


@pytest.fixture
def machine(tmp_path):
    """The settings for a machine of so many nodes, whose devices are spread over them in order."""

    def made(nodes: int, devices: int) -> dict:
        folder = tmp_path / "sys/devices/system/node"
        folder.mkdir(parents=True)
        (folder / "has_memory").write_text(f"0-{nodes - 1}\n")
        for device in range(devices):
            folder = tmp_path / f"sys/bus/pci/devices/0000:{0x10 + device:02x}:00.0"
            folder.mkdir(parents=True)
            (folder / "numa_node").write_text(f"{device * nodes // devices}\n")
        return {"BUDDY_NUMA": "auto", "PINBUDDY_SIM_MACHINE": str(tmp_path), "PINBUDDY_SIM_DEVICES": str(devices)}

    return made


def test_a_request_gets_memory_of_its_devices_node_again_and_again(run, machine, tmp_path):
    trace = tmp_path / "run.jsonl"
    by_device, settled, counted, told = run(HEAD + """
found, pins = {0: [], 1: []}, []
for step in range(6):
    for device in (0, 1):
        found[device] += addresses(device)
    pins.append(sim()["pins"])
stats = pinbuddy.stats()
in_all = sum(it["bytes"] for it in stats["segments"])
told = [line for line in pinbuddy.memory_summary().splitlines() if "For devices on" in line]
answer([nodes(found[device]) for device in (0, 1)], pins[1] == pins[-1], stats["engine"]["pinned_bytes"]["current"] == in_all, told)
""", **OFF, **machine(2, 2), BUDDY_TRACE=str(trace)).value
    assert by_device == [[0], [1]] and counted
    assert all(f'"op":"node","node":{node},' in trace.read_text() for node in (0, 1))
    assert settled, "phases that take turns pin once each"
    assert len(told) == 1 and "node 0: " in told[0], told


def test_the_example_finds_each_gpus_memory_on_its_node(example, machine):
    found = [line.split()[:4] for line in example("nodes", **machine(2, 4))[1:]]
    assert [(gpu, own, serves) for gpu, own, _, serves in found] == [("0", "0", "0"), ("1", "0", "0"), ("2", "1", "1"), ("3", "1", "1")]


def test_threads_of_eight_devices_on_four_nodes_take_what_is_near(run, machine):
    assert run(HEAD + """
found = {device: [] for device in range(8)}
def ask(device):
    torch.cuda.set_device(device)
    for step in range(40):
        kept = [pinned(2 + (step * 7 + n) % 9) for n in range(3)]
        if step >= 36:  # In use, so that no other region has its address.
            found[device] += nodes([it.data_ptr() for it in kept])
        kept[0].to("cuda", non_blocking=True)
        del kept
together(*[lambda device=device: ask(device) for device in range(8)])
torch.cuda.synchronize()
answer([sorted(set(found[device])) for device in range(8)])
""", **OFF, BUDDY_MAX_MB="2048", **machine(4, 8)).value == [[[device // 2] for device in range(8)]]


def test_memory_of_the_other_node_is_taken_once_for_requests_of_one_size(run, machine):
    places, missed = run(HEAD + """
with torch.cuda.device(0):
    pinned(60)
misses = lambda: pinbuddy.stats()["engine"]["misses"]
before = misses()
found = {at for step in range(50) for at in addresses(1, [40])}
answer(len(found), misses() - before)
""", **OFF, BUDDY_MAX_MB="64", **machine(2, 2)).value
    assert places == 1 and missed <= 2, "a miss flushes all caches"
