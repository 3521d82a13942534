"""BUDDY_PLAN: a program that ran once starts with what it needs."""

import json
import os
import signal
import sys

import plans
import pytest
from conftest import needs
from measure import at_least, compare_pairs, torch_folder
from plans import MIB, TRAINING

SETTINGS = {"BUDDY_THRESHOLD_MB": "1"}


@pytest.mark.parametrize("steps", ["", "mark"])
def test_the_second_run_pins_once_and_no_more_than_the_first_one_needed(run, plan, steps):
    first = plans.recorded(run, plan, TRAINING, **SETTINGS, STEPS=steps)
    assert first["plan"] is None and first["pins"] > 1
    assert json.loads(plan.read_text())["format"] == "pinbuddy-plan"
    second = run(TRAINING, BUDDY_PLAN=str(plan), **SETTINGS, STEPS=steps).quiet.value
    assert second["pins"] == 1 and second["misses"] == 0, second
    assert second["pinned"] <= 1.02 * second["largest"], second
    assert second["plan"]["hits"] == second["hits"], "each request has its slot"


@needs(11, "private pools for pinned memory")
def test_what_the_engine_never_serves_is_left_out(run, plan):
    program = """
    there = torch.zeros(5 << 20, dtype=torch.uint8, device="cuda")
    for _ in range(12):
        live = [pinned(2), pinned(3)]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            there.copy_(pinned(5), non_blocking=True)
        del live
    print(json.dumps(pinbuddy.stats()["plan"]))
    """
    assert run(program, BUDDY_PLAN=str(plan), **SETTINGS).value is None
    made = json.loads(plan.read_text())
    assert {size for size, *_ in made["slots"]} == {2 * MIB, 3 * MIB}, made["slots"]
    assert sum(made["regions"]) == 5 * MIB, made["regions"]
    counts = run(program, BUDDY_PLAN=str(plan), **SETTINGS).value
    assert (counts["hits"], counts["misses"], counts["unplanned"]) == (24, 0, 0)


@pytest.mark.parametrize("threshold, why", [(MIB, "checksum"), (8 * MIB, "it was made for a threshold of 8388608 bytes")])
def test_a_plan_that_cannot_be_used_is_said_and_kept(run, plan, threshold, why):
    plans.write(plan, [8 * MIB], [[8 * MIB, 0, 0]], [[0]], threshold=threshold)
    before = plan.read_text().replace('"requests":0', f'"requests":{int(why == "checksum")}')
    plan.write_text(before)
    outcome = run(TRAINING, BUDDY_PLAN=str(plan), **SETTINGS)
    (line,) = outcome.warnings
    assert str(plan) in line and why in line and "BUDDY_PLAN_UPDATE=1" in line
    assert outcome.value["plan"] is None and outcome.value["hits"] > 0
    assert plan.read_text() == before

    outcome = run(TRAINING, BUDDY_PLAN=str(plan), BUDDY_PLAN_UPDATE="1", **SETTINGS)
    (line,) = outcome.warnings
    assert "is made anew" in line and why in line
    assert plan.read_text() != before
    assert run(TRAINING, BUDDY_PLAN=str(plan), **SETTINGS).value["pins"] == 1


def test_a_file_that_is_no_plan_is_never_replaced(run, plan):
    plan.write_bytes(content := b"\x7fELF\xff")
    (line,) = run(TRAINING, BUDDY_PLAN=str(plan), BUDDY_PLAN_UPDATE="1", **SETTINGS).warnings
    assert str(plan) in line and "is not used" in line and "name another one" in line
    assert plan.read_bytes() == content


def test_a_program_that_is_killed_leaves_a_plan(run, plan):
    assert run(TRAINING, BUDDY_PLAN=str(plan), STEPS="die", check=False, **SETTINGS).returncode == -signal.SIGKILL
    assert run(TRAINING, BUDDY_PLAN=str(plan), **SETTINGS).value["plan"]["hits"] > 0


def test_a_block_waits_for_its_streams(run, plan):
    plans.write(plan, [4 * MIB], [[4 * MIB, 0, 0]], [[0]])
    assert run("""
        stream = torch.cuda.Stream()
        block = pinned(4)
        at = block.data_ptr()
        (shown,) = [it["blocks"] for it in pinbuddy.segments() if it["kind"] == "planned"]
        with torch.cuda.stream(stream):
            copy = block.to("cuda", non_blocking=True)
        del block
        plan, engine = pinbuddy.stats()["plan"], pinbuddy.stats()["engine"]
        torch.cuda.synchronize()
        answer(shown, plan["hits"], engine["pending_bytes"]["current"], pinned(4).data_ptr() == at)
        """, BUDDY_PLAN=str(plan)).value == [[{"offset": 0, "bytes": 4 * MIB, "state": "live"}], 1, 4 * MIB, True]


@pytest.mark.timing
def test_a_planned_pair_is_faster_than_stocks(plan):
    plans.write(plan, [8 * MIB], [[8 * MIB, 0, 0]], [[0]])
    stock, fork = (torch_folder(python) for python in (os.environ["PINBUDDY_STOCK_PYTHON"], sys.executable))
    ratios = compare_pairs(stock, fork, 8 * MIB, processes=8, BUDDY_PLAN=plan)["ratios"]
    assert at_least(ratios) <= 0.6, f"planned / stock: {ratios}"
