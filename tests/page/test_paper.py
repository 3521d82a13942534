"""The report's page on a phone, in the dark, and on paper."""

import os
import pathlib
import re
import unittest
import zlib

from pages import PICTURES, SOURCES, Pages


def streams(pdf: bytes) -> list[bytes]:
    """What a PDF draws: its streams, unpacked."""
    unpacked = []
    for packed in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            unpacked.append(zlib.decompress(packed))
        except zlib.error:
            unpacked.append(packed)
    return sorted(unpacked)


def fills(drawn: list[bytes]) -> set[str]:
    """The colours that something is filled with."""
    number = rb"(\d*\.?\d+)"
    found = re.findall(rb" ".join([number] * 3) + rb" (?:rg|scn?)\b", b"\n".join(drawn))
    return {"#" + "".join(f"{round(float(it) * 255):02x}" for it in parts) for parts in found if max(map(float, parts)) <= 1}


class Paper(Pages):
    def test_phones_dark_rooms_and_paper(self) -> None:
        self.open(self.small, width=390, height=800, dark=True)
        self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 390)
        paper = "getComputedStyle(document.body).backgroundColor"
        dark = self.page.evaluate(paper)
        self.keep("phone")
        self.open(self.small)
        self.assertNotEqual(dark, self.page.evaluate(paper))
        self.page.emulate_media(media="print")
        shown = "[...document.querySelectorAll('button, #settings')].filter((it) => it.offsetParent).length"
        self.assertEqual(self.page.evaluate(shown), 0, "nothing to press on paper")
        self.quiet()

    def printed(self, name: str, dark: bool) -> bytes:
        self.open(self.small, dark=dark)
        self.page.evaluate("document.getElementById('map').focus()")
        before = self.pixels("curves"), self.pixels("map")
        pdf = self.page.pdf()
        self.assertEqual((self.pixels("curves"), self.pixels("map")), before, "the screen is as it was")
        if PICTURES:
            (pathlib.Path(PICTURES) / f"{name}.pdf").write_bytes(pdf)
        self.quiet()
        return pdf

    def test_colours_are_printed_and_a_dark_room_does_not_show_on_paper(self) -> None:
        light, dark = self.printed("light", False), self.printed("dark", True)
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", (SOURCES / "style.css").read_text().split("@media")[0]))
        # A bar, an area's swatch and the map's key. Swatches of curves are borders, which are printed in any case.
        wanted = {name: colours[name] for name in ("pinbuddy", "live", "waiting", "free")}
        filled = fills(streams(light))
        self.assertEqual({name: it for name, it in wanted.items() if it not in filled}, {}, sorted(filled))
        self.assertEqual(streams(light), streams(dark))


if __name__ == "__main__":
    unittest.main()
