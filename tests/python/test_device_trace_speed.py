"""Recording device memory beside a training: a step takes at most 3 % longer."""

import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import needs
from measure import at_least, environment, in_turn

pytestmark = needs(11, "the calls of its device allocator that traces stand in front of")

# AdamW on the transformer of device_programs.py; a line on standard input is a turn of steps.
PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
import torch
from device_programs import Block

torch.manual_seed(0)
model = torch.nn.Sequential(*(Block(512) for _ in range(6))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.randn(4, 128, 512).cuda()
for line in sys.stdin:
    begin = time.perf_counter()
    for _ in range(int(line)):
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    print(time.perf_counter() - begin, flush=True)
"""


class Training:
    def __init__(self, **variables):
        command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(**variables)
        )

    def turn(self, steps: int) -> float:
        print(steps, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, *_) -> None:
        self.process.communicate()


def ratios(folder: Path, processes: int, turns: int, steps: int = 4) -> list[float]:
    """The time of a step recorded over that of one that is not: a median for each pair of processes."""
    found = []
    for number in range(processes):
        file = folder / f"trace-{number}"
        with Training() as off, Training(BUDDY_DEVICE_TRACE=file) as on:
            seen = {off: [], on: []}
            for it in (off, on):
                it.turn(5)
            for turn in range(turns):
                for it in in_turn(turn, off, on):
                    seen[it].append(it.turn(steps))
        assert file.read_text().count('"alloc"') > 1000
        found.append(statistics.median(seen[on]) / statistics.median(seen[off]))
    return found


@pytest.mark.timing
def test_recording_costs_a_step_at_most_3_percent(tmp_path):
    found = ratios(tmp_path, 6, 30)
    assert at_least(found) <= 1.03, found


if __name__ == "__main__":
    # For the figure in docs/device.md: ratios of pairs of processes, and their median.
    all_of_them = ratios(Path(sys.argv[1]), 8, 40)
    print([round(it, 4) for it in all_of_them], "median", round(statistics.median(all_of_them), 4))
