"""A snapshot that `report --format snapshot` writes, opened by PyTorch's own memory_viz in the browser.

`PINBUDDY_MEMORY_VIZ` is its torch/utils/viz/MemoryViz.js, which no wheel of torch has, and `PINBUDDY_D3` the d3.js of the version
that it imports. It imports that from a network; here an import map has it from the file. The page is what
torch.cuda._memory_viz writes, less the network.
"""

import base64
import json
import os
import pathlib
import pickle
import re
import subprocess
import unittest

from pages import TOOLS, Pages, complaints, fetched, trace


# d3's script fills this object. Importers see `event` change, as with a real module.
BEFORE_D3 = """
let event = null, told = () => {};
window.d3 = Object.defineProperty({}, "event", {get: () => event, set: (it) => { event = it; told(it); }, enumerable: true});
"""


def module_of_d3(script: str) -> str:
    """What the viewer imports: all that d3's script has filled its object with."""
    names = set(re.findall(r"^\s*exports\.(\w+) = ", script, re.MULTILINE)) - {"event"}
    return f"export let event = null; told = (it) => {{ event = it; }}; export const {{{','.join(sorted(names))}}} = d3;"


def page(snapshot: bytes, view: str) -> str:
    viewer = pathlib.Path(os.environ["PINBUDDY_MEMORY_VIZ"]).read_text()
    d3 = pathlib.Path(os.environ["PINBUDDY_D3"]).read_text()
    url = f"data:text/javascript;base64,{base64.b64encode(module_of_d3(d3).encode()).decode()}"
    imports = {it: url for it in re.findall(r'^import .* from "(https://[^"]+)";$', viewer, re.MULTILINE)}
    padded = snapshot + b"\0" * (3 - len(snapshot) % 3)
    files = json.dumps([{"name": "snapshot.pickle", "base64": base64.b64encode(padded).decode()}])
    return (
        f'<!DOCTYPE html><html><head><meta charset="utf-8"><script>{BEFORE_D3}{d3}</script>'
        f'<script type="importmap">{json.dumps({"imports": imports})}</script></head><body>'
        f'<script type="module">{viewer}\nadd_local_files({files}, {json.dumps(view)});</script></body></html>'
    )


@unittest.skipUnless("PINBUDDY_MEMORY_VIZ" in os.environ, "PINBUDDY_MEMORY_VIZ names no MemoryViz.js")
class MemoryViz(Pages):
    def snapshot(self, file: pathlib.Path) -> bytes:
        to = file.with_suffix(".pickle")
        command = [TOOLS, "report", file, "--format", "snapshot", "-o", to]
        subprocess.run(list(map(os.fspath, command)), check=True, stdout=subprocess.DEVNULL)
        return to.read_bytes()

    def view(self, snapshot: bytes, view: str) -> None:
        """Opens it; nobody is asked for anything, and nothing goes wrong."""
        file = self.folder / "viz.html"
        file.write_text(page(snapshot, view))
        self.open(file)
        self.assertEqual([it for it in fetched if not it.startswith(("file:", "data:"))], [])
        # It says what it has read.
        self.assertEqual([it for it in complaints if not it.startswith("log: ")], [])

    def drawn(self, selector: str) -> int:
        return self.page.evaluate(f"document.querySelectorAll('{selector}').length")

    def test_it_draws_blocks_segments_and_what_was_pinned_over_time(self) -> None:
        snapshot = self.snapshot(self.folder / "small.jsonl")
        segments = sum(it["action"] == "segment_alloc" for it in pickle.loads(snapshot)["device_traces"][0])
        self.view(snapshot, "Active Memory Timeline")
        self.assertGreater(self.drawn("svg polygon"), 2000)
        self.keep("memory-viz-blocks")
        self.view(snapshot, "Allocator State History")
        self.assertGreater(self.drawn("svg rect"), 30)
        self.keep("memory-viz-state")
        self.view(snapshot, "Active Cached Segment Timeline")
        self.assertGreaterEqual(self.drawn("svg polygon"), segments)
        self.keep("memory-viz-segments")

    def test_it_reads_long_ones(self) -> None:
        self.view(self.snapshot(trace(self.folder / "long.jsonl", 100_000)), "Allocator Settings")
        self.assertIn("CUDA Caching Allocator Settings", self.page.evaluate("document.body.textContent"))


if __name__ == "__main__":
    unittest.main()
