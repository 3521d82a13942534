"""BUDDY_DEVICE_PLAN: a training that ran once has its device memory in one region, where it was planned to be."""

import json

import pytest
from device_plans import MIB, TRAINING, recorded


@pytest.fixture
def plan(tmp_path):
    return tmp_path / "device.json"


@pytest.mark.parametrize("settings", [{}, {"STEPS": "mark"}])
def test_the_second_run_is_served_from_one_region_and_counted_as_blocks(run, plan, settings):
    first = recorded(run, plan, TRAINING, **settings)
    assert first["device"] is None
    assert json.loads(plan.read_text())["format"] == "pinbuddy-device-plan"
    outcome = run(TRAINING, BUDDY_DEVICE_PLAN=str(plan), **settings)
    assert outcome.warnings == []
    second = outcome.value
    (stream,) = second["device"]
    assert stream["hits"] == second["asked"] and stream["misses"] == stream["unplanned"] == 0, stream
    assert not stream["dropped"]
    assert second["reserved"] <= first["reserved"], (first["reserved"], second["reserved"])
    # All that is large lies in the region, which is as long as what lived at once, in whole steps of PyTorch's.
    (made,) = json.loads(plan.read_text())["plans"]
    peak = made["plan"]["facts"]["peak"]
    assert peak <= stream["reserved_bytes"] <= 1.01 * peak + 2 * MIB, (peak, stream)
    assert second["stats"]["reserved_bytes.large_pool.peak"] == stream["reserved_bytes"]
    # Statistics and snapshots count blocks as blocks, and the region once.
    counts = lambda which: {
        f"{name}.{when}": which["stats"][f"{name}.{pool}.{when}"]
        for name in ("allocation", "active")
        for pool in ("all", "large_pool")
        for when in ("current", "peak", "allocated", "freed")
    }
    assert counts(second) == counts(first)
    for when in ("current", "peak", "allocated", "freed"):
        stock, planned = first["stats"], second["stats"]
        requested = f"requested_bytes.all.{when}"
        assert planned[requested] == stock[requested]
        # A place is as long as its request in whole pages; a block of PyTorch's may be up to 1 MiB longer.
        for name in ("allocated_bytes", "active_bytes"):
            most = planned[requested] + 4096 * second["asked"]
            assert planned[requested] <= planned[f"{name}.all.{when}"] <= most, (name, when)
    assert second["allocated"] == first["allocated"] == second["kept"]
    assert second["segments"] == second["stats"]["reserved_bytes.all.current"]
    live = sum(size for state, size, _ in second["blocks"] if state == "active_allocated")
    assert live == second["allocated"]
    assert sum(size for _, size, _ in second["blocks"]) == second["segments"]


def damaged(path):
    text = path.read_text()
    path.write_text(text.replace('"offset"', '"offest"') if '"offset"' in text else text[: len(text) // 2])


def of_another_torch(path):
    path.write_text(path.read_text().replace('"torch":"', '"torch":"1.'))


@pytest.mark.parametrize("change", [damaged, of_another_torch])
def test_a_plan_that_cannot_be_used_costs_a_line(run, plan, change):
    recorded(run, plan, TRAINING)
    change(plan)
    text = plan.read_text()
    outcome = run(TRAINING, BUDDY_DEVICE_PLAN=str(plan))
    (warning,) = outcome.warnings
    assert str(plan) in warning and "is not used" in warning and "BUDDY_PLAN_UPDATE=1" in warning
    assert outcome.value["device"] is None
    assert plan.read_text() == text


def test_a_plan_of_another_world_size_is_not_used_and_can_be_made_anew(run, plan):
    recorded(run, plan, TRAINING)
    ranked = plan.with_name("device.0.json")
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    plan.rename(ranked)
    named = {"BUDDY_DEVICE_PLAN": str(plan.with_name("device.{rank}.json")), **ranks}
    (warning,) = run(TRAINING, **named).warnings
    assert "is not used" in warning and "2" in warning, warning
    (warning,) = run(TRAINING, **named, BUDDY_PLAN_UPDATE="1").warnings
    assert "made anew" in warning, warning
    again = run(TRAINING, **named)
    assert again.warnings == [] and again.value["device"][0]["hits"] == again.value["asked"]


@pytest.mark.parametrize("changes", [{"CHANGE": "0.05"}, {"STEPS": "evaluation"}, {"STEPS": "shape"}])
def test_what_differs_is_served_beside_the_plan(run, plan, changes):
    """The program itself looks whether anybody else has written to its blocks."""
    recorded(run, plan, TRAINING)
    other = run(TRAINING, BUDDY_DEVICE_PLAN=str(plan), SEED="2", **changes).value
    stock = run(TRAINING, SEED="2", **changes).value
    (stream,) = other["device"]
    assert stream["hits"] >= 0.6 * other["asked"], (stream, other["asked"])
    assert other["allocated"] == stock["allocated"]
    # Not more than what the plan takes beyond what stock does.
    assert other["reserved"] <= 1.25 * stock["reserved"], (other, stock["reserved"])


def test_between_steps_all_but_what_stays_can_be_given_back(run, plan):
    program = """
    from program import *
    import pinbuddy
    def step():
        live = [block(mib) for mib in (30, 16, 24)]
        del live[1]
        return live
    weights = [block(12), block(20)]
    marks = [torch.full(it.shape, 3 + at, dtype=torch.uint8) for at, it in enumerate(weights)]
    for it, mark in zip(weights, marks):
        it.copy_(mark)
    for _ in range(30):
        step()
    reserved = [torch.cuda.memory_reserved() >> 20]
    torch.cuda.empty_cache()
    reserved.append(torch.cuda.memory_reserved() >> 20)
    live = step()
    torch.cuda.empty_cache()
    reserved.append(torch.cuda.memory_reserved() >> 20)
    del live
    hits = (pinbuddy.stats()["device"] or [{"hits": 0}])[0]["hits"]
    # The plan has places for it where the steps' blocks lay.
    large = block(80)
    reserved.append(torch.cuda.memory_reserved() >> 20)
    whole = all(torch.equal(it.cpu(), mark) for it, mark in zip(weights, marks))
    print(json.dumps([reserved, hits, whole]))
    """
    run(program, BUDDY_DEVICE_PLAN=str(plan))
    planned = run(program, BUDDY_DEVICE_PLAN=str(plan), PINBUDDY_SIM_DEVICE_MB="120")
    reserved, hits, whole = planned.value
    assert reserved == [112, 32, 112, 112] and whole, planned.value
    assert hits == 2 + 3 * 31
    # The plan stays in force.
    assert planned.warnings == []


def test_with_no_plan_nothing_stands_before_pytorch(run, tmp_path):
    program = """
    import ctypes, json, torch
    torch.zeros(1, device="cuda")
    pointer = ctypes.c_void_p.in_dll(
        ctypes.CDLL("libc10_cuda.so"), "_ZN3c104cuda20CUDACachingAllocator9allocatorE")
    table = ctypes.c_void_p.from_address(pointer.value).value
    maps = [line.split() for line in open("/proc/self/maps")]
    def holds(line):
        begin, end = (int(it, 16) for it in line[0].split("-"))
        return begin <= table < end
    print(json.dumps([line[-1].rsplit("/", 1)[-1] for line in maps if holds(line)]))
    """
    assert run(program).value == ["libc10_cuda.so"]
    assert run(program, BUDDY_DEVICE_PLAN=str(tmp_path / "plan.json")).value == ["libtorch_pinbuddy.so"]
    assert run(program, BUDDY_DEVICE_PLAN="/nowhere/plan.json", BUDDY_DISABLE="1").value == ["libc10_cuda.so"]
