"""The report's page answers the pointer, and the keys alone do all that the pointer does."""

import re
import unittest

from pages import Pages


class Hands(Pages):
    def test_keys_wheel_and_drag_move_both_pictures(self) -> None:
        self.browser.open(self.small)
        seen = {self.pixels("curves")}
        whole = self.text("range")
        self.assertIn("all", whole)
        self.browser.run("document.getElementById('curves').focus()")
        for key in ("+", "+", "ArrowRight", "-"):
            self.browser("Input.dispatchKeyEvent", type="keyDown", key=key, text=key[:1])
            seen.add(self.pixels("curves"))
        self.assertEqual(len(seen), 5, "each key draws another picture")
        self.assertIn("to", self.text("range"))
        self.browser.run("document.getElementById('map').scrollIntoView()")
        x, y = self.middle("map")
        before = self.text("range")
        self.browser("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
        self.browser("Input.dispatchMouseEvent", type="mouseMoved", x=x - 90, y=y, button="left", buttons=1)
        self.browser("Input.dispatchMouseEvent", type="mouseReleased", x=x - 90, y=y, button="left")
        self.browser.frame()
        dragged = self.text("range")
        self.assertNotEqual(before, dragged)
        self.browser("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-200)
        self.browser.frame()
        self.assertNotEqual(dragged, self.text("range"), "a picture that was clicked zooms")
        self.browser("Input.dispatchKeyEvent", type="keyDown", key="0", text="0")
        self.browser.frame()
        self.assertEqual(self.text("range"), whole)
        self.quiet()

    def test_the_map_names_the_block_under_the_pointer(self) -> None:
        self.browser.open(self.small)
        self.browser.run("document.getElementById('map').scrollIntoView()")
        x, y = self.middle("map")
        said = set()
        for down in range(-150, 150, 10):
            self.browser("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y + down)
            self.browser.frame()
            if not self.browser.run("document.getElementById('map-hint').hidden"):
                said.add(self.text("map-hint"))
        self.assertGreater(len(said), 3)
        for text in said:
            self.assertRegex(text, r"[KMG]iB \(.*bytes\)\nrequested at .* by thread [012], line ")
        for allocator in ("stock", "a plan"):
            before = self.pixels("map")
            self.browser.run(f"""(() => {{ const it = document.getElementById('map-of');
                it.value = '{allocator}'; it.dispatchEvent(new Event('change')); }})()""")
            self.assertNotEqual(before, self.pixels("map"))
        self.quiet()

    def test_keys_choose_blocks_and_zoom_the_height_of_the_map(self) -> None:
        self.browser.open(self.small)
        self.browser.run("document.getElementById('map').focus()")
        plain, said = self.pixels("map"), []
        for key in ("n", "n", "p", "Escape", "p"):
            self.press(key)
            said.append(self.text("block"))
        first, second, again, none, last = said
        line = lambda text: int(re.search(r"line ([\d,]+)", text)[1].replace(",", ""))
        self.assertEqual((again, none), (first, ""))
        self.assertLess(line(first), line(second))
        self.assertLess(line(second), line(last), "from the end where none was chosen")
        self.assertNotEqual(self.pixels("map"), plain, "it is outlined")
        self.press("Escape")
        self.assertEqual(self.pixels("map"), plain)
        self.press("Shift ArrowUp", "Shift ArrowUp")
        zoomed = self.pixels("map")
        self.press("ArrowUp")
        moved = self.pixels("map")
        self.assertEqual(len({plain, zoomed, moved}), 3)
        self.press("ArrowDown", "Shift ArrowDown", "Shift ArrowDown", "Shift ArrowDown")
        self.assertEqual(self.pixels("map"), plain)
        self.press("Shift ArrowUp", "+")
        self.assertNotEqual(self.pixels("map"), plain)
        self.press("n")
        self.assertGreater(line(self.text("block")), line(first), "the first in view")
        self.press("Escape", "0")
        self.assertEqual(self.pixels("map"), plain, "0 shows all of it, its height too")
        self.quiet()

    def test_arrows_scroll_the_page_where_the_whole_height_is_shown(self) -> None:
        self.browser.open(self.small)
        kept = """(() => { const event = new KeyboardEvent('keydown', { key: 'ArrowDown', cancelable: true });
            document.getElementById('map').dispatchEvent(event); return event.defaultPrevented; })()"""
        self.assertFalse(self.browser.run(kept))
        self.browser.run("document.getElementById('map').focus()")
        self.press("Shift ArrowUp")
        self.assertTrue(self.browser.run(kept))


if __name__ == "__main__":
    unittest.main()
