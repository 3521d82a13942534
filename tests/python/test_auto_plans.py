"""BUDDY_PLAN=auto: the file is chosen by what decides a program's memory."""

import functools
import json
import subprocess
import sys
import textwrap

import pytest
from conftest import forking, needs
from measure import environment
from plans import LOOP

# Programs are files here: what a script is called, and what is in it, is what is tested.
PROGRAM = """
import argparse, json, os, torch, pinbuddy
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--seed", type=int)
parser.add_argument("--out")
options = parser.parse_args()
SIZES = [int(it) for it in os.environ.get("SIZES", "3 5 4 7 5").split()]
torch.zeros(1, device="cuda")
for step in range(40):
    [torch.empty(options.batch * size << 17, dtype=torch.uint8, pin_memory=True) for size in SIZES]
stats = pinbuddy.stats()
engine = stats["engine"]
print(json.dumps({"auto": stats["auto"]["pinned"], "plan": stats["plan"], "pins": engine["segments"]["allocated"], "misses": engine["misses"]}))
"""
SMALL = {"BUDDY_PLAN": "auto", "BUDDY_WARMUP": "sync", "BUDDY_BLOCK_SIZE_MB": "16", "BUDDY_BLOCK_COUNT": "1", "PINBUDDY_SIM_LOCK": "0"}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache" / "plans"


@pytest.fixture
def start(tmp_path, folder):
    """``start("name.py", arguments)``: what the program said, and its warnings."""

    def start(script, *arguments, text=PROGRAM, **variables):
        path = tmp_path / script
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        own = environment(**{"BUDDY_PLAN_DIR": str(folder), **SMALL, **variables})
        # A plan is chosen by the words of the command.
        command = [forking(by_words=True), str(path), *arguments]
        done = subprocess.run(command, env=own, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        said = [line for line in done.stderr.splitlines() if line.startswith("pinbuddy: ")]
        return json.loads(done.stdout.splitlines()[-1]), said

    return start


def test_the_second_run_of_a_key_starts_warm_and_a_seed_is_in_no_key(start, folder, tmp_path):
    first, said = start("train.py", "--batch", "8", "--seed", "1", "--out", "runs")
    assert said == [] and first["plan"] is None and first["auto"]["state"] == "new", (first, said)
    (file,) = folder.iterdir()
    assert str(file) == first["auto"]["file"] and file.name.startswith("train.py-pinned-")
    assert file.stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700
    assert json.loads(file.read_text().splitlines()[0])["key"]["arguments"] == ["--batch", "8", "--out", "PATH"]

    before = file.stat().st_mtime_ns
    second, said = start("train.py", "--batch", "8", "--out", "others", "--seed", "2", BUDDY_LOG="info")
    assert second["auto"] == {"file": str(file), "state": "used"}
    assert second["misses"] == 0 and second["pins"] == 1, second
    assert second["plan"]["hits"] == 200 and second["plan"]["unplanned"] == 0, second
    assert len([line for line in said if f"BUDDY_PLAN=auto: {file} is used" in line]) == 1, said
    assert file.stat().st_mtime_ns > before, "its use is noted"
    assert list(folder.iterdir()) == [file]

    # Of the same command, as its line is.
    program = [tmp_path / "train.py", "--seed", "5", "--batch", "8", "--out", "runs"]
    why = [sys.executable, "-m", "pinbuddy", "plans", "why", "--json", "--", "python", *program]
    done = subprocess.run(why, env=environment(BUDDY_PLAN_DIR=str(folder)), capture_output=True, text=True, timeout=300)
    pinned, device = json.loads(done.stdout)
    assert (pinned["file"], pinned["is_there"], device["is_there"]) == (str(file), True, False)


def test_a_plan_that_does_not_fit_renews_itself_and_serves_inputs_of_two_shapes(start, folder):
    shapes = ["3 5 4 7 5", "4 6 2 8 3"]
    (first, _), (second, said) = [start("train.py", SIZES=it, BUDDY_LOG="info") for it in shapes]
    assert (first["auto"]["state"], second["auto"]["state"]) == ("new", "used")
    assert second["plan"]["hits"] < 100
    assert any("does not fit this run: of its first 200 requests" in it for it in said), said
    assert not any("warning" in it for it in said), said
    (file,) = folder.iterdir()
    for sizes in shapes:
        before = file.read_bytes()
        again, _ = start("train.py", SIZES=sizes)
        assert (again["plan"]["hits"], again["plan"]["misses"], again["misses"], again["pins"]) == (200, 0, 0, 1), again
        assert file.read_bytes() == before


def test_device_memory_has_a_file_of_its_own(start, folder):
    text = PROGRAM + """
for step in range(400):
    [torch.empty(mib << 20, dtype=torch.uint8, device="cuda") for mib in (8, 5)]
print(json.dumps(pinbuddy.stats()["auto"]))
"""
    first, second = (start("train.py", text=text, BUDDY_DEVICE_PLAN="auto")[0] for _ in range(2))
    assert [first[it]["state"] for it in ("pinned", "device")] == ["new", "new"]
    assert [second[it]["state"] for it in ("pinned", "device")] == ["used", "used"]
    assert {first[it]["file"] for it in first} == {str(it) for it in folder.iterdir()}


def start_device(start, *sizes, steps=100, **variables):
    """What became of the plan of device memory of a program that asks for blocks of so many MiB, and what was said."""
    # Sizes are in no key. Of four sizes two blocks live beside one.
    shape = {"SIZES": json.dumps(sizes), "LIVE": 2 * (len(sizes) - 3), "STEPS": steps, "KIND": "device"}
    auto, said = start("train.py", text=textwrap.dedent(LOOP), BUDDY_PLAN="", BUDDY_DEVICE_PLAN="auto", **shape, **variables)
    return auto["device"]["state"], said


@needs(11, "plans of device memory")
def test_each_rank_of_a_machine_has_a_plan_of_device_memory_of_its_own(start):
    for state in ("new", "used"):
        for rank in range(3):
            assert start_device(start, 12, 20, 16, WORLD_SIZE=3, RANK=rank, LOCAL_RANK=rank) == (state, [])


@needs(11, "plans of device memory")
def test_a_device_plan_goes_after_two_runs_in_a_row_that_it_does_not_fit(start, folder):
    start_shape = functools.partial(start_device, start)
    fits, other = (36, 90, 48), (45, 51, 57, 54)
    assert start_shape(*fits) == ("new", [])
    _, (line,) = start_shape(*other)
    assert "if it does not fit the next run either, it is removed, and the run after that is recorded" in line, line
    assert start_shape(*fits) == ("used", [])
    # It goes on with what the first request asked for, and before that a run that ended early.
    assert start_shape(36, 36, 36, steps=10) == ("used", [])
    _, (line,) = start_shape(36, 36, 36)
    assert "90 MiB were reserved for 36 MiB in use; in the recorded run, without it, 126 MiB for 90 MiB: if it does not" in line, line
    state, (line,) = start_shape(*other)
    assert state == "used" and "the second run in a row that it does not fit: it is removed, and the next run is recorded" in line, line
    assert list(folder.iterdir()) == []
