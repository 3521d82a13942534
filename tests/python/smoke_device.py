"""Device memory in the smoke test: recorded, then planned; before 2.11 a line says that there is none.

Run as a program, it asks for a few large blocks again and again, and prints how its plan fared.
"""

import os
import subprocess
import sys
import tempfile

from release import from_minor

STEPS = 30
SIZES = (12, 20, 16, 0.5)
ABSENT = "BUDDY_DEVICE_PLAN and BUDDY_DEVICE_TRACE have no effect"


def blocks() -> None:
    import pinbuddy
    import torch

    for _ in range(STEPS):
        # The last is small to PyTorch.
        for mib in SIZES:
            torch.empty(int(mib * (1 << 20)), dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() == 0
    counts = pinbuddy.stats()["device"]
    print(counts[0]["hits"] if counts else 0)


def check() -> str:
    """Runs the program twice with the name of a plan; says what is wrong by failing, and else what was seen."""
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "device.json")
        hits = [run(plan) for _ in range(2)]
        assert os.path.exists(plan) == from_minor(11)
    if from_minor(11):
        assert hits == [0, len(SIZES) * STEPS], hits
        return "device memory recorded and planned"
    assert hits == [0, 0], hits
    return "device memory said to be absent"


def run(plan: str) -> int:
    """How many requests the plan served."""
    done = subprocess.run([sys.executable, __file__], env=os.environ | {"BUDDY_DEVICE_PLAN": plan}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    absent = [line for line in done.stderr.splitlines() if ABSENT in line]
    if from_minor(11):
        assert not absent, absent
    else:
        assert len(absent) == 1 and "older than 2.11" in absent[0], done.stderr
    return int(done.stdout)


if __name__ == "__main__":
    blocks()
