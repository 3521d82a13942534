"""docs/deploy.md's pod and job: their numbers add up, and their lines work."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pinbuddy
import pytest
import yaml
from conftest import forking
from documents import ROOT, as_a_user, blocks

pytestmark = pytest.mark.checkout("the page is in docs")
PAGE = ROOT / "docs/deploy.md"
GIB = 1 << 30


def block(wanted: str) -> str:
    (text,) = (text for kind, text in blocks(PAGE) if kind == wanted)
    return text


@pytest.fixture
def pod() -> dict:
    return yaml.safe_load(block("yaml"))


def quantity(text: str) -> int:
    """Bytes of a Kubernetes quantity."""
    number, unit = re.fullmatch(r"(\d+)([KMGT]i)", text).groups()
    return int(number) << {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}[unit]


def run(command: list[str], **variables: str) -> subprocess.CompletedProcess:
    return as_a_user(command, forking(), **variables)


def test_what_all_ranks_pin_fits_the_pods_limit_with_room_for_the_programs(pod):
    variables = {it["name"]: it["value"] for it in pod["env"]}
    assert variables.keys() <= pinbuddy.config().keys() and all(isinstance(it, str) for it in variables.values())
    limits = pod["resources"]["limits"]
    ranks, memory = limits["nvidia.com/gpu"], quantity(limits["memory"])
    each = int(variables["BUDDY_MAX_MB"]) << 20
    pinned, pool = ranks * each, quantity(limits["hugepages-2Mi"])
    assert pinned <= memory // 2, "half of it is the programs'"
    assert pool % (2 << 20) == 0 and pool <= pinned, "what is in the pool counts in BUDDY_MAX_MB"
    comments = " ".join(re.findall(r"# (.*)", block("yaml")))
    said = [int(it) for it in re.findall(r"(\d+) GiB", comments)]
    numbers = [each, pinned, pinned, (memory - pinned) // ranks, pinned]
    assert said == [it // GIB for it in numbers] and all(it % GIB == 0 for it in numbers), comments
    assert f"the first {pool // GIB} of" in comments
    text = PAGE.read_text()
    assert f"A pod of {ranks} ranks" in text and f"less than {memory // 2 // GIB} GiB" in text


def test_the_probe_passes_where_pinbuddy_serves_or_was_turned_off_and_not_where_it_should_and_does_not(pod):
    probe = pod["startupProbe"]["exec"]["command"]
    assert probe[:2] == ["sh", "-c"]
    done = run(probe)
    assert done.returncode == 0 and "pinbuddy serves pinned memory." in done.stdout
    assert run(probe, BUDDY_DISABLE="1").returncode == 0
    assert run(["sh", "-c", "python -m pinbuddy doctor"], BUDDY_DISABLE="1").returncode == 1
    assert run(probe, PINBUDDY_SIM_DEVICES="0").returncode == 1


def test_the_job_writes_a_plan_for_each_rank(tmp_path):
    (tmp_path / "train.py").symlink_to(ROOT / "examples/offload.py")
    ranks = 'for rank in 0 1; do SLURM_PROCID=$rank SLURM_NTASKS=2 SLURM_NTASKS_PER_NODE=2 "$@" || exit 1; done'
    (srun := tmp_path / "srun").write_text(f"#!/bin/bash\n{ranks}\n")
    srun.chmod(srun.stat().st_mode | stat.S_IXUSR)
    (job := tmp_path / "job.sh").write_text(f"#!/bin/bash\nset -e\ncd {tmp_path}\nPATH={tmp_path}:$PATH\n{block('sh')}")
    for pins in (True, False):
        done = run(["bash", os.fspath(job)], HOME=os.fspath(tmp_path), SLURM_JOB_NAME="pretrain")
        assert done.returncode == 0, done.stderr
        later = [line.split()[3] for line in done.stdout.splitlines() if re.match(r"\s+[1-7]\s", line)]
        assert len(later) == 14 and any(it != "0" for it in later) == pins, done.stdout
    assert sorted(it.name for it in (tmp_path / "plans").iterdir()) == ["pretrain.0.plan", "pretrain.1.plan"]
