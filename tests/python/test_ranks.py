"""Many ranks on one machine, started by torchrun: what they share, and how a failure affects the others."""

import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from conftest import forking, skip_on_a_real_gpu
from measure import environment

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
# Small, since every rank locks its blocks for real.
SETTINGS = {"BUDDY_BLOCK_SIZE_MB": "16", "BUDDY_BLOCK_COUNT": "2", "BUDDY_THRESHOLD_MB": "2", "BUDDY_WARMUP": "sync", "BUDDY_LOG": "debug"}
GIB = 1 << 30


class Torchrun:
    """What torchrun and its ranks said and how it ended."""

    def __init__(self, ranks: int, folder: Path, *command, which: str = "fork", **variables):
        skip_on_a_real_gpu(variables)
        python = forking(which)
        # In packet mode each read returns the data of one write(2).
        reading, writing = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
        self.packets: list[bytes] = []
        reader = threading.Thread(target=self._read, args=[reading], daemon=True)
        reader.start()
        # A folder that shows what ranks leave behind. (Not TMPDIR: DataLoader's workers make sockets there, whose
        # paths must be short.)
        (folder / "work").mkdir()
        # The address makes it independent of this machine's host name.
        launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", "--local-addr=127.0.0.1"]
        # PYTHON_EXEC is what starts each rank.
        own = environment(HOME=folder / "work", PYTHON_EXEC=python, OMP_NUM_THREADS=1, GLOO_SOCKET_IFNAME="lo", **variables)
        process = subprocess.Popen(
            [python, *launch, "--log-dir", folder / "torchrun", *command], cwd=folder / "work", env=own,
            stdout=subprocess.PIPE, stderr=writing, text=True, start_new_session=True,
        )
        os.close(writing)
        try:
            self.stdout, _ = process.communicate(timeout=300)
        finally:
            if process.poll() is None:
                # Its ranks have their own sessions, and end with it.
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=40)
            reader.join()
            os.close(reading)
        self.returncode = process.returncode
        self.stderr = b"".join(self.packets).decode()
        self.left = [path.name for path in (folder / "work").iterdir()]

    def _read(self, pipe: int) -> None:
        while packet := os.read(pipe, 1 << 16):
            self.packets.append(packet)

    def lines(self, rank: int) -> list[str]:
        """What pinbuddy said in a rank."""
        return re.findall(rf"^pinbuddy: rank {rank}: (.*)$", self.stderr, re.MULTILINE)


@pytest.fixture(scope="module")
def cores() -> int:
    """The number of cores that the library sees, at most eight."""
    program = "import torch; torch.empty(16 << 20, dtype=torch.uint8, pin_memory=True)"
    own = environment(**SETTINGS | {"BUDDY_BLOCK_COUNT": "0"})
    done = subprocess.run([forking(), "-c", program], env=own, capture_output=True, text=True, check=True, timeout=240)
    (threads,) = threads_said(done.stderr.splitlines())
    here = len(os.sched_getaffinity(0))
    return here if threads == min(here, 8) else threads


def threads_said(lines: list[str]) -> set[int]:
    """With how many threads a process touched its blocks."""
    return {int(it) for line in lines for it in re.findall(r"mapped and touched.*threads: (\d+)", line)}


def found(folder: Path, moment: str) -> dict[int, dict]:
    return {int(path.stem.split("-")[1]): json.loads(path.read_text()) for path in folder.glob(f"{moment}-*.json")}


def check_shares(torchrun: Torchrun, before: dict[int, dict], ranks: int, cores: int) -> None:
    """Every rank has its share of memory and cores, its own data, and unbroken output lines."""
    assert before.keys() == set(range(ranks)), torchrun.stderr
    for rank, it in before.items():
        bytes_, why = it["budget"]["bytes"], it["budget"]["why"]
        half_of, shared_by = re.match(r"half of the ([\d.]+) GiB of .*, shared by (\d+) processes \(LOCAL_WORLD_SIZE\)$", why).groups()
        assert int(shared_by) == ranks
        # `why` is rounded to a tenth of a GiB.
        assert abs(bytes_ * 2 * ranks - float(half_of) * GIB) <= 0.051 * GIB
        assert it["engine"] and it["right"] and it["gathered"] == list(range(ranks))
        assert threads_said(torchrun.lines(rank)) == {max(1, min(8, cores // ranks))}
    ours = [packet for packet in torchrun.packets if b"pinbuddy: " in packet]
    assert len(ours) >= 2 * ranks
    for packet in ours:
        assert re.fullmatch(rb"pinbuddy: rank \d+: [^\n]+\n", packet), packet


def test_ranks_share_memory_and_cores_and_speak_one_at_a_time(tmp_path, cores):
    ranks = 8
    torchrun = Torchrun(ranks, tmp_path, HERE / "ranks.py", tmp_path, **SETTINGS)
    assert torchrun.returncode == 0, torchrun.stderr
    before = found(tmp_path, "before")
    check_shares(torchrun, before, ranks, cores)
    assert all(it["segments"] == [16, 16] for it in before.values())
    # .nv: what CUDA caches.
    assert set(torchrun.left) <= {".nv"}, "ranks write no files"


def test_a_killed_rank_and_one_that_cannot_pin_leave_the_others(tmp_path, cores):
    ranks, killed, unpinned = 4, 2, 1
    torchrun = Torchrun(ranks, tmp_path, HERE / "ranks.py", tmp_path, str(killed), str(unpinned), **SETTINGS, PINBUDDY_SIM_DEVICES=2)
    assert torchrun.returncode != 0 and "SIGKILL" in torchrun.stderr
    before, after = found(tmp_path, "before"), found(tmp_path, "after")
    check_shares(torchrun, before, ranks, cores)
    assert after.keys() == {0, 1, 3}, torchrun.stderr
    for rank, it in after.items():
        assert it["kept"] and it["again"] and it["state"] == "on", rank
        warnings = [line for line in torchrun.lines(rank) if line.startswith("warning: ")]
        if rank == unpinned:
            assert before[rank]["segments"] == [16]
            assert "out of memory" in it["error"] and "pinbuddy: " in it["error"]
            assert len(warnings) == 1 and "1 of 2 blocks" in warnings[0]
        else:
            assert before[rank]["segments"] == [16, 16]
            assert it["error"] is None and it["large"] and warnings == []


SMALL = ["--steps=3", "--layers=2", "--width=256", "--tokens=256", "--vocabulary=1000"]
EXAMPLE = {"BUDDY_THRESHOLD_MB": "1", "BUDDY_WARMUP": "background", "BUDDY_LOG": "warn"}


@pytest.mark.parametrize("name, which", [("fsdp", "fork"), ("ddp", "stock")])
def test_an_example_runs(tmp_path, name, which):
    torchrun = Torchrun(
        2, tmp_path, EXAMPLES / f"{name}.py", *SMALL, "--backend=gloo", which=which, **SETTINGS | EXAMPLE, PINBUDDY_SIM_QUIET=1
    )
    assert torchrun.returncode == 0, torchrun.stderr
    # In torch 2.8 gloo logs its connection there.
    title, _, *lines = [line for line in torchrun.stdout.splitlines() if not line.startswith("[Gloo]")]
    assert title.endswith(": 2 ranks, gloo, 3 steps")
    for rank, line in enumerate(lines[:2]):
        number, first, _, later, _, pins, _, most, _ = line.split()
        assert int(number) == rank and float(first) > 0 and float(later) > 0
        assert int(pins) > 0 and float(most) > 0
    rest = "\n".join(lines[2:])
    if which == "stock":
        assert rest == "Stock PyTorch: pinbuddy is not installed."
    else:
        assert int(re.search(r"Active blocks +\| +\d+ \| +\d+ \| +(\d+) \|", rest)[1]) >= 3, "the engine served each step"
        assert "(LOCAL_WORLD_SIZE)" in rest
