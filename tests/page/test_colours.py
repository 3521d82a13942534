"""Colours of the report's page stay apart for those who see fewer of them, in light and in dark.

Protanopia, deuteranopia and tritanopia as Machado, Oliveira and Fernandes simulate them (2009), at full severity, on linear
RGB; distances are those of CIELAB (1976). About 2 is a difference that can just be seen side by side.
"""

import itertools
import math
import re
import unittest

from pages import SOURCES

SIGHT = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
# Of sRGB in CIE XYZ, and its white.
XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)

CURVES = ("stock", "buddy", "pinbuddy", "exact", "plan", "other", "limit")


def times(matrix, vector):
    return [sum(one * other for one, other in zip(row, vector)) for row in matrix]


def linear(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [it / 12.92 if it <= 0.04045 else ((it + 0.055) / 1.055) ** 2.4 for it in parts]


def lab(colour: str, sight: str) -> tuple[float, float, float]:
    seen = [min(max(it, 0.0), 1.0) for it in times(SIGHT[sight], linear(colour))]
    x, y, z = (
        it ** (1 / 3) if it > 216 / 24389 else (24389 / 27 * it + 16) / 116
        for it in (one / white for one, white in zip(times(XYZ, seen), WHITE))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def nearest(colours: list[str]) -> tuple[float, str]:
    """The least distance of two, and which."""
    pairs = itertools.product(SIGHT, itertools.combinations(colours, 2))
    return min((math.dist(lab(one, sight), lab(other, sight)), f"{one} {other}, {sight}") for sight, (one, other) in pairs)


def contrast(one: str, other: str) -> float:
    light, dark = sorted((times(XYZ, linear(it))[1] for it in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def themes() -> dict[str, dict[str, str]]:
    """The style sheet's colours by theme."""
    light, dark = (SOURCES / "style.css").read_text().split("@media screen and (prefers-color-scheme: dark)")
    of = lambda text: dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", text.split("* {")[0]))
    return {"light": of(light), "dark": of(dark)}


def palette(name: str) -> list[str]:
    """One of the map's."""
    (text,) = re.findall(rf"const {name} = \[(.*?)\]", (SOURCES / "map.js").read_text())
    return re.findall(r"#[0-9a-f]{6}", text)


class Colours(unittest.TestCase):
    def test_known_colours_are_seen_as_they_are(self) -> None:
        self.assertEqual([round(it) for it in lab("#ffffff", "all colours")], [100, 0, 0])
        # Red is as dark as it is dull without its cones.
        self.assertLess(lab("#ff0000", "protanopia")[0], lab("#ff0000", "deuteranopia")[0])
        distance, _ = nearest(["#d55e00", "#8a6d00"])
        self.assertLess(distance, 3, "two that were taken for one another")

    def test_both_themes_name_the_same_colours(self) -> None:
        light, dark = themes().values()
        self.assertEqual(light.keys(), dark.keys())
        self.assertLessEqual(set(CURVES), light.keys())

    def test_curves_stay_apart_from_each_other_and_from_the_paper(self) -> None:
        for theme, colours in themes().items():
            curves = [colours[it] for it in CURVES]
            distance, which = nearest(curves)
            self.assertGreater(distance, 16, f"{theme}: {which}")
            for it in curves:
                self.assertGreater(contrast(it, colours["paper"]), 3, f"{theme}: {it} on paper")

    def test_areas_stay_apart(self) -> None:
        for theme, colours in themes().items():
            distance, which = nearest([colours[it] for it in ("live", "waiting", "paper")])
            self.assertGreater(distance, 16, f"{theme}: {which}")

    def test_threads_and_streams_stay_apart_from_each_other_and_from_what_is_free_or_waits(self) -> None:
        kinds = palette("KINDS")
        self.assertEqual(len(kinds), 8)
        for theme, colours in themes().items():
            distance, which = nearest([*kinds, colours["waiting"], colours["free"]])
            self.assertGreater(distance, 16, f"{theme}: {which}")

    def test_sizes_go_from_dark_to_light_in_steps_that_are_seen(self) -> None:
        for sight in SIGHT:
            steps = [lab(it, sight) for it in palette("SCALE")]
            for one, other in itertools.pairwise(steps):
                self.assertGreater(other[0], one[0], sight)
                self.assertGreater(math.dist(one, other), 5, sight)


if __name__ == "__main__":
    unittest.main()
