"""What tests of the report's page share: a browser, a trace, and the page that is made of it."""

import atexit
import functools
import json
import os
import pathlib
import random
import subprocess
import tempfile
import time
import unittest

from playwright.sync_api import Page, sync_playwright

CHROMIUM = pathlib.Path(os.environ["PINBUDDY_CHROMIUM"])
"""The folder of the program and its libraries."""

TOOLS = os.environ["PINBUDDY_TOOLS"]
PICTURES = os.environ.get("PINBUDDY_PICTURES")
"""A folder for pictures of the pages, to look at."""
complaints: list[str] = []
fetched: list[str] = []
"""What the page that is open complains of, and what it asks for."""
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
def shared() -> tuple[pathlib.Path, Page]:
    """A folder and a page of a headless Chromium for all tests, gone when this process ends."""
    scratch, playwright = tempfile.TemporaryDirectory(), sync_playwright().start()
    browser = playwright.chromium.launch(
        executable_path=CHROMIUM / "chromium",
        args=["--disable-dev-shm-usage", "--disable-gpu"],
        env={**os.environ, "LD_LIBRARY_PATH": os.fspath(CHROMIUM / "lib")},
    )
    atexit.register(scratch.cleanup)
    atexit.register(playwright.stop)
    page = browser.new_page()
    page.on("console", lambda it: complaints.append(f"{it.type}: {it.text}"))
    page.on("pageerror", lambda it: complaints.append(str(it)))
    page.on("dialog", lambda it: complaints.append("a dialog was opened"))
    page.on("request", lambda it: fetched.append(it.url))
    return pathlib.Path(scratch.name), page


class Pages(unittest.TestCase):
    """Tests of pages in the one browser."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder, cls.page = shared()
        cls.small = cls.report(cls.folder / "small.jsonl")

    def open(self, page: pathlib.Path, width: int = 1280, height: int = 900, dark: bool = False) -> float:
        """Opens a page, and returns the seconds until it was drawn."""
        complaints.clear()
        fetched.clear()
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(media="null", color_scheme="dark" if dark else "light")
        begun = time.monotonic()
        self.page.goto(page.absolute().as_uri())
        self.frame()
        return time.monotonic() - begun

    def frame(self) -> None:
        """Waits until the page was drawn."""
        self.page.evaluate("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

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
            self.page.screenshot(path=pathlib.Path(PICTURES) / f"{name}.png", full_page=True)

    def text(self, name: str) -> str:
        return self.page.text_content(f"#{name}")

    def pixels(self, name: str) -> str:
        self.frame()
        return self.page.evaluate(f"document.getElementById('{name}').toDataURL()")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.frame()

    def quiet(self) -> None:
        self.frame()
        self.assertEqual(complaints, [])

    def middle(self, name: str) -> list[float]:
        it = self.page.locator(f"#{name}").bounding_box()
        return [it["x"] + it["width"] / 2, it["y"] + it["height"] / 2]
