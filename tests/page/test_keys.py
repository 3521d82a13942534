"""What the report's pictures say to the pointer, keys reach, too; and assistive technology is told the same to the letter.

What it is told is read from the browser's accessibility tree, which is what screen readers get.
"""

import contextlib
import re
import unittest

from pages import Pages

CURVES = ("curves", "gaps")


class Keys(Pages):
    def told(self, name: str) -> dict[str, object]:
        """What the accessibility tree has of a picture."""
        browser = self.page.context.new_cdp_session(self.page)
        found = browser.send("Runtime.evaluate", {"expression": f"document.getElementById('{name}')"})["result"]["objectId"]
        (node,) = browser.send("Accessibility.getPartialAXTree", {"objectId": found, "fetchRelatives": False})["nodes"]
        fields = {it["name"]: it["value"].get("value") for it in node["properties"]}
        fields |= {it: node[it]["value"] for it in ("role", "name", "description", "value") if it in node}
        # This Chromium hands the protocol the bytes of a value's text as if each were a character.
        with contextlib.suppress(UnicodeError):
            fields["valuetext"] = fields["valuetext"].encode("latin-1").decode()
        return fields

    def hint(self, name: str) -> str:
        """What is said beside the pointer or what keys chose; nothing where that is hidden."""
        box = f"document.getElementById('{name}-hint')"
        return self.page.evaluate(f"{box}.hidden ? '' : {box}.textContent")

    def to(self, name: str) -> None:
        self.page.evaluate(f"document.getElementById('{name}').scrollIntoView({{ block: 'center' }})")
        self.page.evaluate(f"document.getElementById('{name}').focus()")
        self.frame()

    def point(self, name: str, part: float) -> str:
        """What the pointer is told at a part of a picture's width, between its margins."""
        box = self.page.evaluate(f"(() => {{ const it = document.getElementById('{name}').getBoundingClientRect(); return [it.x, it.y, it.width, it.height]; }})()")
        left, right = 64, 150
        across = left + (box[2] - left - right) * part
        self.page.mouse.move(box[0] + across, box[1] + box[3] / 2)
        self.frame()
        said = self.hint(name)
        self.page.mouse.move(1, 1)
        return said

    def test_arrows_say_what_the_pointer_is_told_and_speak_it(self) -> None:
        for name in CURVES:
            self.open(self.small)
            self.to(name)
            self.assertIn("no moment chosen", self.told(name)["valuetext"])
            self.assertEqual(self.hint(name), "")
            plain = self.pixels(name)
            seen, drawn = [], {plain}
            for keys in (["ArrowRight"], ["ArrowRight"], ["PageUp"], ["PageDown", "ArrowLeft"], ["Home"], ["End"], ["Home", *["ArrowRight"] * 50]):
                self.press(*keys)
                seen.append(self.hint(name))
                drawn.add(self.pixels(name))
                self.assertRegex(seen[-1], r"^at .*\n")
                self.assertEqual(self.told(name)["valuetext"], seen[-1])
            self.assertEqual(seen[0], seen[4], "from the left edge")
            self.assertEqual(seen[3], seen[4])
            self.assertEqual((len(set(seen)), len(drawn)), (5, 6), "a line shows where it is")
            for part, text in ((0, seen[4]), (1, seen[5]), (0.5, seen[6])):
                self.assertEqual(self.point(name, part), text)
            self.assertEqual(self.hint(name), seen[6], "where the pointer has gone, the keys' is said again")
            self.keep(f"keys-{name}")
            self.press("Escape")
            self.assertEqual((self.hint(name), self.pixels(name)), ("", plain))
            self.assertIn("no moment chosen", self.told(name)["valuetext"])
            self.quiet()

    def test_assistive_technology_meets_sliders_that_say_their_keys(self) -> None:
        self.open(self.small)
        for name in (*CURVES, "map"):
            self.to(name)
            self.press("End")
            told = self.told(name)
            self.assertEqual((told["role"], told["focused"]), ("slider", True))
            self.assertTrue(told["name"])
            self.assertIn("Home", told["description"])
            self.assertEqual(float(told["value"]), float(told["valuemax"]))
            # Else it would be spoken twice.
            live = f"['{name}-hint', 'block'].some((it) => document.getElementById(it).closest('[aria-live]'))"
            self.assertFalse(self.page.evaluate(live))

    def test_what_is_chosen_is_said_where_the_keys_are_and_follows_what_is_shown(self) -> None:
        self.open(self.small)
        self.to("curves")
        self.press("Home", *["PageUp"] * 5)
        said, before = self.hint("curves"), self.told("curves")["valuetext"]
        self.page.evaluate("document.querySelector('#series input').click()")
        self.frame()
        self.assertEqual(len(self.told("curves")["valuetext"].split("\n")), len(before.split("\n")) - 1, "a curve that is off is not said")
        self.assertEqual(self.hint("curves"), self.told("curves")["valuetext"])
        self.page.evaluate("document.querySelector('#series input').click()")
        self.to("gaps")
        self.assertEqual(self.hint("curves"), "", "the keys are elsewhere")
        self.assertEqual(self.hint("gaps").split("\n")[0], said.split("\n")[0], "the moment is the same")
        self.to("curves")
        self.assertEqual(self.hint("curves"), said)
        self.quiet()

    def test_the_picture_goes_along_and_zooms_around_the_moment(self) -> None:
        self.open(self.small)
        self.to("curves")
        self.press("Home", *["PageUp"] * 3)
        said = self.hint("curves")
        self.press(*["+"] * 6)
        self.assertEqual(self.hint("curves"), said)
        near = self.text("range")
        self.press(*["PageUp"] * 11)
        self.assertNotEqual(self.text("range"), near)
        self.assertNotEqual(self.hint("curves"), "")
        for key, edge in (("Home", "0 µs to "), ("End", " to ")):
            self.press(key)
            self.assertIn(edge, self.text("range"))
            self.assertNotEqual(self.hint("curves"), "")
        self.press(*["Shift+ArrowLeft"] * 11)
        self.assertEqual(self.hint("curves"), "", "it was left behind")
        self.assertIn("no moment chosen", self.told("curves")["valuetext"])
        self.quiet()

    def test_arrows_go_from_block_to_block_and_say_them_as_the_pointer_is_told(self) -> None:
        self.open(self.small)
        self.to("map")
        self.assertIn("no block chosen", self.told("map")["valuetext"])
        said = []
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "PageUp", "PageDown", "End", "Home"):
            self.press(key)
            said.append(self.hint("map"))
            self.assertEqual(said[-1], self.text("block"))
            self.assertEqual(said[-1], self.told("map")["valuetext"])
        first, second, again, later, back, last, home = (int(re.search(r"line ([\d,]+)", it)[1].replace(",", "")) for it in said)
        self.assertEqual((again, home), (first, first))
        self.assertLess(first, second)
        self.assertLess(second, back + 2)
        self.assertLess(back, later)
        self.assertLess(later, last)
        self.keep("keys-map")
        self.press("+", "+", "End", "ArrowLeft")
        self.assertNotEqual(self.hint("map"), "", "the picture went along")
        self.press("Escape")
        self.assertEqual((self.hint("map"), self.text("block")), ("", ""))
        self.assertIn("no block chosen", self.told("map")["valuetext"])
        self.quiet()

    def test_on_a_phone_and_in_the_dark_it_lies_within_its_picture(self) -> None:
        inside = """(() => {{ const it = (name) => document.getElementById(name).getBoundingClientRect();
            const [box, picture] = [it('{0}-hint'), it('{0}')];
            return box.width > 0 && box.left >= picture.left && box.right <= picture.right + 1 && box.top >= picture.top && box.bottom <= picture.bottom; }})()"""
        self.open(self.small, width=390, height=800, dark=True)
        for name in (*CURVES, "map"):
            self.to(name)
            for key in ("Home", "PageUp", "PageUp", "End"):
                self.press(key)
                self.assertEqual(self.hint(name), self.told(name)["valuetext"])
                self.assertTrue(self.page.evaluate(inside.format(name)), f"{name}, {key}")
            self.press("PageDown")
        self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 390)
        self.keep("keys-phone")
        self.quiet()


if __name__ == "__main__":
    unittest.main()
