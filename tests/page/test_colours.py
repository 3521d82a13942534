"""Colours of the report's page stay apart for those who see fewer of them, in light and in dark.

Protanopia, deuteranopia and tritanopia as Machado, Oliveira and Fernandes simulate them (2009), at full severity, on linear
RGB; distances are those of CIELAB (1976). About 2 is a difference that can just be seen side by side.
"""

import itertools
import re
import unittest

from coloraide import Color
from pages import SOURCES

SIGHT = {"all colours": None, "protanopia": "protan", "deuteranopia": "deutan", "tritanopia": "tritan"}
CURVES = ("stock", "buddy", "pinbuddy", "exact", "plan", "other", "limit")


def lab(colour: str, sight: str) -> Color:
    kind = SIGHT[sight]
    seen = Color(colour).filter(kind, method="machado").clip("srgb") if kind else Color(colour)
    return seen.convert("lab-d65")


def nearest(colours: list[str]) -> tuple[float, str]:
    """The least distance of two, and which."""
    pairs = itertools.product(SIGHT, itertools.combinations(colours, 2))
    return min((lab(one, sight).distance(lab(other, sight), space="lab-d65"), f"{one} {other}, {sight}") for sight, (one, other) in pairs)


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
        self.assertEqual([round(it) for it in lab("#ffffff", "all colours").coords()], [100, 0, 0])
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
                self.assertGreater(Color(it).contrast(colours["paper"], method="wcag21"), 3, f"{theme}: {it} on paper")

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
                self.assertGreater(one.distance(other, space="lab-d65"), 5, sight)


if __name__ == "__main__":
    unittest.main()
