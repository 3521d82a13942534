"""The report's page answers the pointer, and the keys alone do all that the pointer does."""

import re
import unittest

from pages import Pages


class Hands(Pages):
    def test_keys_wheel_and_drag_move_both_pictures(self) -> None:
        self.open(self.small)
        seen = {self.pixels("curves")}
        whole = self.text("range")
        self.assertIn("all", whole)
        self.page.evaluate("document.getElementById('curves').focus()")
        for key in ("+", "+", "ArrowRight", "-"):
            self.press(key)
            seen.add(self.pixels("curves"))
        self.assertEqual(len(seen), 5, "each key draws another picture")
        self.assertIn("to", self.text("range"))
        self.page.evaluate("document.getElementById('map').scrollIntoView()")
        x, y = self.middle("map")
        before = self.text("range")
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x - 90, y)
        self.page.mouse.up()
        self.frame()
        dragged = self.text("range")
        self.assertNotEqual(before, dragged)
        self.page.mouse.wheel(0, -200)
        self.frame()
        self.assertNotEqual(dragged, self.text("range"), "a picture that was clicked zooms")
        self.press("0")
        self.assertEqual(self.text("range"), whole)
        self.quiet()

    def test_the_map_names_the_block_under_the_pointer(self) -> None:
        self.open(self.small)
        self.page.evaluate("document.getElementById('map').scrollIntoView()")
        x, y = self.middle("map")
        said = set()
        for down in range(-150, 150, 10):
            self.page.mouse.move(x, y + down)
            self.frame()
            if not self.page.evaluate("document.getElementById('map-hint').hidden"):
                said.add(self.text("map-hint"))
        self.assertGreater(len(said), 3)
        for text in said:
            self.assertRegex(text, r"[KMG]iB \(.*bytes\)\nrequested at .* by thread [012], line ")
        for allocator in ("stock", "a plan"):
            before = self.pixels("map")
            self.page.select_option("#map-of", allocator)
            self.assertNotEqual(before, self.pixels("map"))
        self.quiet()

    def test_keys_choose_blocks_and_zoom_the_height_of_the_map(self) -> None:
        self.open(self.small)
        self.page.evaluate("document.getElementById('map').focus()")
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
        self.press("Shift+ArrowUp", "Shift+ArrowUp")
        zoomed = self.pixels("map")
        self.press("ArrowUp")
        moved = self.pixels("map")
        self.assertEqual(len({plain, zoomed, moved}), 3)
        self.press("ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown")
        self.assertEqual(self.pixels("map"), plain)
        self.press("Shift+ArrowUp", "+")
        self.assertNotEqual(self.pixels("map"), plain)
        self.press("n")
        self.assertGreater(line(self.text("block")), line(first), "the first in view")
        self.press("Escape", "0")
        self.assertEqual(self.pixels("map"), plain, "0 shows all of it, its height too")
        self.quiet()

    def test_arrows_scroll_the_page_where_the_whole_height_is_shown(self) -> None:
        self.open(self.small)
        kept = """(() => { const event = new KeyboardEvent('keydown', { key: 'ArrowDown', cancelable: true });
            document.getElementById('map').dispatchEvent(event); return event.defaultPrevented; })()"""
        self.assertFalse(self.page.evaluate(kept))
        self.page.evaluate("document.getElementById('map').focus()")
        self.press("Shift+ArrowUp")
        self.assertTrue(self.page.evaluate(kept))


if __name__ == "__main__":
    unittest.main()
