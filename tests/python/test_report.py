"""A program's trace becomes a page, and a snapshot that PyTorch's own memory_viz draws."""

import json
import pickle
import re

from conftest import command_line

PROGRAM = """
for step in range(3):
    [pinned(1 + i) for i in range(8)]
"""


def test_what_a_program_did_is_in_its_page(traced, tmp_path):
    assert "24 requests" in command_line("report", traced(PROGRAM, BUDDY_BLOCK_SIZE_MB="64").file, check=True).stdout
    page = (tmp_path / "trace.report.html").read_text()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["peak"] == sum(range(1, 9)) << 20
    assert [it["name"] for it in data["allocators"]][0] == "stock"


def test_memory_viz_draws_the_snapshot(traced, tmp_path):
    snapshot = tmp_path / "viz.pickle"
    command_line("report", traced(PROGRAM).file, "--format", "snapshot", "-o", snapshot, check=True)
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
