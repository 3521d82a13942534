"""A headless Chromium, driven through a pipe by its own protocol. Needs nothing but Python.

Invariant: one browser, one page at a time; what the page complains of is kept in ``complaints``.
"""

import base64
import json
import os
import pathlib
import subprocess
import tempfile
import time

CHROMIUM = pathlib.Path(os.environ["PINBUDDY_CHROMIUM"])
"""The folder of the program and its libraries."""


class Browser:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        arguments = [
            CHROMIUM / "chromium",
            "--headless",
            # Its sandbox needs rights that containers do not give; the pages are ours.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._folder.name}",
        ]
        # The protocol's ends are 3 and 4.
        ends = f"exec 3<&{to_browser} 4>&{from_browser}; exec \"$@\""
        self._process = subprocess.Popen(
            ["bash", "-c", ends, "chromium", *map(os.fspath, arguments)],
            env={**os.environ, "LD_LIBRARY_PATH": os.fspath(CHROMIUM / "lib")},
            pass_fds=(to_browser, from_browser),
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number = 0
        self._read = b""
        self._session = None
        self.complaints: list[str] = []
        self.fetched: list[str] = []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self(f"{domain}.enable")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._folder.cleanup()

    def __call__(self, method: str, **parameters: object) -> dict:
        """Calls a method of the protocol."""
        self._number += 1
        call = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            call["sessionId"] = self._session
        os.write(self._to, json.dumps(call).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _message(self) -> dict:
        while b"\0" not in self._read:
            more = os.read(self._from, 1 << 20)
            if not more:
                raise AssertionError("the browser has ended")
            self._read += more
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)

    def _note(self, message: dict) -> None:
        method, what = message.get("method"), message.get("params", {})
        if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(what)[:500])
        if method == "Page.javascriptDialogOpening":
            self.complaints.append("a dialog was opened")
        if method == "Network.requestWillBeSent":
            self.fetched.append(what["request"]["url"])

    def run(self, script: str) -> object:
        """The value of an expression in the page, once it is there."""
        done = self("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(json.dumps(done["exceptionDetails"])[:2000])
        return done["result"].get("value")

    def frame(self) -> None:
        """Waits until the page was drawn."""
        self.run("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

    def open(self, page: pathlib.Path, width: int = 1280, height: int = 900, dark: bool = False) -> float:
        """Opens a page, and returns the seconds until it was drawn."""
        self.complaints.clear()
        self.fetched.clear()
        self.size(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", media="", features=[scheme])
        begun = time.monotonic()
        self("Page.navigate", url=page.absolute().as_uri())
        while self.run("document.readyState") != "complete":
            time.sleep(0.01)
        self.frame()
        return time.monotonic() - begun

    def size(self, width: int, height: int) -> None:
        self(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def paper(self) -> bytes:
        """The page as a PDF, printed as browsers do unless they are told to print backgrounds."""
        return base64.b64decode(self("Page.printToPDF", printBackground=False)["data"])

    def picture(self, to: pathlib.Path) -> None:
        """The whole page as a PNG."""
        height = self.run("document.documentElement.scrollHeight")
        width = self.run("innerWidth")
        self.size(width, height)
        self.frame()
        to.write_bytes(base64.b64decode(self("Page.captureScreenshot", format="png")["data"]))
