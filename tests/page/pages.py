"""What tests of the report's page share: a browser, a trace, and the page that is made of it."""

import atexit
import functools
import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

from browser import Browser

TOOLS = os.environ["PINBUDDY_TOOLS"]
PICTURES = os.environ.get("PINBUDDY_PICTURES")
"""A folder for pictures of the pages, to look at."""
SOURCES = pathlib.Path(__file__).parents[2] / "tools/src/report/page"


def trace(path: pathlib.Path, requests: int) -> pathlib.Path:
    """A program with three threads and two streams, the same each time."""
    draw, now, live = random.Random(1), 0, []
    lines = ['{"format":"pinbuddy-trace","version":3}']
    for number in range(1, requests + 1):
        now += draw.randrange(200)
        size = int(2 ** draw.uniform(12, 27))
        lines.append(
            json.dumps({"t": now, "op": "alloc", "id": number, "bytes": size, "thread": number % 3})
        )
        if number % 3 == 0:
            lines.append(json.dumps({"t": now, "op": "event", "id": number, "stream": number % 2}))
        live.append(number)
        if len(live) > 30:
            freed = live.pop(draw.randrange(len(live)))
            lines.append(json.dumps({"t": now, "op": "free", "id": freed, "thread": 0}))
        if number % 500 == 0:
            lines.append(json.dumps({"t": now, "op": "iter"}))
    path.write_text("\n".join(lines) + "\n")
    return path


@functools.cache
def shared() -> tuple[pathlib.Path, Browser]:
    """A folder and a browser for all tests, gone when this process ends."""
    scratch, browser = tempfile.TemporaryDirectory(), Browser()
    atexit.register(scratch.cleanup)
    atexit.register(browser.close)
    return pathlib.Path(scratch.name), browser


class Pages(unittest.TestCase):
    """Tests of pages in the one browser."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder, cls.browser = shared()
        cls.small = cls.report(cls.folder / "small.jsonl")

    @classmethod
    def report(cls, file: pathlib.Path, *arguments: str) -> pathlib.Path:
        out = cls.folder / f"{abs(hash((file, arguments)))}.html"
        if file.name == "small.jsonl" and not arguments:
            # The page that most tests open: planned once, for as long as users wait for it.
            if out.exists():
                return out
            trace(file, 2000)
        command = [TOOLS, "report", file, "-o", out, *arguments]
        subprocess.run(list(map(os.fspath, command)), check=True, stdout=subprocess.DEVNULL)
        return out

    def keep(self, name: str) -> None:
        if PICTURES:
            self.browser.picture(pathlib.Path(PICTURES) / f"{name}.png")

    def text(self, name: str) -> str:
        return self.browser.run(f"document.getElementById('{name}').textContent")

    def pixels(self, name: str) -> str:
        self.browser.frame()
        return self.browser.run(f"document.getElementById('{name}').toDataURL()")

    def press(self, *keys: str) -> None:
        for key in keys:
            shift, _, name = key.rpartition(" ")
            parameters = {"key": name, "modifiers": 8 if shift else 0}
            if len(name) == 1:
                parameters["text"] = name
            self.browser("Input.dispatchKeyEvent", type="keyDown", **parameters)
            self.browser("Input.dispatchKeyEvent", type="keyUp", **parameters)
        self.browser.frame()

    def quiet(self) -> None:
        self.browser.frame()
        self.assertEqual(self.browser.complaints, [])

    def middle(self, name: str) -> list[float]:
        box = f"document.getElementById('{name}').getBoundingClientRect()"
        return self.browser.run(f"(() => {{ const it = {box}; return [it.x + it.width / 2, it.y + it.height / 2]; }})()")
