"""A program's trace becomes a page, and a snapshot that PyTorch's own memory_viz draws."""

import json
import pickle
import re
import subprocess
import sys

PROGRAM = """
from program import *
for step in range(3):
    tensors = [pinned(1 + i) for i in range(8)]
    del tensors
"""


def report(file, *arguments: str) -> str:
    """What it prints."""
    command = [sys.executable, "-m", "pinbuddy", "report", file, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_what_a_program_did_is_in_its_page(run, tmp_path):
    file = tmp_path / "trace.jsonl"
    run(PROGRAM, BUDDY_TRACE=file, BUDDY_BLOCK_SIZE_MB="64")
    assert "24 requests" in report(file)
    page = (tmp_path / "trace.report.html").read_text()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["peak"] == sum(range(1, 9)) << 20
    assert [it["name"] for it in data["allocators"]][0] == "stock"


def test_memory_viz_draws_the_snapshot(run, tmp_path):
    file, snapshot = tmp_path / "trace.jsonl", tmp_path / "viz.pickle"
    run(PROGRAM, BUDDY_TRACE=file)
    report(file, "--format", "snapshot", "-o", snapshot)
    data = pickle.loads(snapshot.read_bytes())
    actions = [it["action"] for it in data["device_traces"][0]]
    assert actions.count("alloc") == actions.count("free_completed") == 24
    assert len(data["segments"]) == actions.count("segment_alloc") - actions.count("segment_free")
    from torch.cuda import _memory_viz

    for draw in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        assert "<script" in draw(data)
    assert "cudaMalloc" in _memory_viz.trace(data)
    assert f"segments: {len(data['segments'])}\n" in _memory_viz.segsum(data)
    assert "<script" in _memory_viz.trace_plot(data, plot_segments=True)
    # The browser's own part is tests/page/test_memory_viz.py.
    assert "<script" in _memory_viz.trace_plot(data, filter_freed=True)
