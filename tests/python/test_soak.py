"""tests/stress/soak.cpp: everything at once, for two minutes, beside the other tests and behind them: it is begun first
(`conftest.py`), and takes what processors the others leave. Longer ones are `ci/soak.sh`'s."""

import json
import os
import subprocess
from pathlib import Path

import figures
import native
from conftest import interpreter
from measure import environment, torch_folder
from plugin import for_cpp

SOAK = Path(__file__).parents[1] / "stress/soak.cpp"
FIGURES = (
    "blocks", "uses_on_streams", "forks", "clears", "threads", "epochs", "epochs_with_faults", "marks_lost",
    "resident_kb_first_half", "resident_kb_last_half",
)
SECONDS = float(os.environ.get("PINBUDDY_SOAK_SECONDS", "120"))


def test_nothing_is_lost_and_memory_does_not_creep():
    program = native.program(SOAK, torch_folder(interpreter("stock")), "-O2", "-pthread")
    settings = {
        "BUDDY_BLOCK_SIZE_MB": 256,
        "BUDDY_BLOCK_COUNT": 2,
        "BUDDY_MAX_MB": 2048,
        # Events complete out of order.
        "PINBUDDY_SIM_EVENT_LAG_MS": 20,
        # A program whose sizes never come to rest is left to PyTorch's own memory for a while. Children share that, too, as
        # with a driver.
        "PINBUDDY_SIM_SHARED": 1,
    }
    done = subprocess.run(
        [str(program), str(SECONDS), "16", "1"],
        env=environment(**for_cpp(), **settings),
        capture_output=True,
        text=True,
        timeout=SECONDS * 2 + 600,
        preexec_fn=lambda: os.nice(19),
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    seen = json.loads(done.stdout.splitlines()[-1])
    figures.write({name.replace("_", " "): seen[name] for name in FIGURES})
    assert seen["marks_lost"] == 0
    assert seen["blocks"] > 100 and seen["forks"] > 0 and seen["uses_on_streams"] > 0, seen
