"""The report's page of a large trace: it opens soon, stays smooth, and says what it leaves out."""

import unittest

from pages import Pages, trace

ROWS = 130_000
DRAWN = 100_000
"""As many as the map shows at most."""
MOST = 3
"""So many times as long as the canvas alone takes for as many rectangles. A busy machine makes both slow."""
TRIES = 3
"""A busy neighbour spoils one measurement, and what is slow is slow each time."""

# The fastest zoom to the whole and back, and the fastest frame that fills rectangles and does nothing else; by turns, since a
# neighbour slows some of each.
TIMES = """(async () => {
  const map = document.getElementById('map');
  const bare = document.createElement('canvas');
  [bare.width, bare.height] = [map.width, map.height];
  bare.style.height = `${map.clientHeight}px`;
  map.after(bare);
  const context = bare.getContext('2d');
  const fill = () => {
    context.clearRect(0, 0, bare.width, bare.height);
    for (let i = 0; i < %d; i += 1) context.fillRect((i * 7919) %% bare.width, (i * 104729) %% bare.height, 3, 2);
  };
  const timed = async (work) => {
    const begun = performance.now();
    work();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - begun;
  };
  const press = (key) => map.dispatchEvent(new KeyboardEvent('keydown', { key }));
  const [zooms, fills] = [[], []];
  for (let i = 0; i < 15; i += 1) {
    press('+');
    await timed(() => {});
    zooms.push(await timed(() => press('-')));
    fills.push(await timed(fill));
  }
  bare.remove();
  return [zooms, fills].map((all) => Math.min(...all));
})()""" % DRAWN


class Large(Pages):
    def test_a_hundred_thousand_events_open_in_three_seconds(self) -> None:
        page = self.report(trace(self.folder / "events.jsonl", 45_000), "--time-limit", "1")
        self.assertLess(self.open(page), 3.0)
        self.quiet()

    def test_as_many_blocks_as_are_drawn_stay_smooth_and_it_says_what_is_left_out(self) -> None:
        self.open(self.report(trace(self.folder / "blocks.jsonl", ROWS), "--time-limit", "1"))
        for _ in range(TRIES):
            step, bare = self.page.evaluate(TIMES)
            print(f"a zoom of {DRAWN:,} blocks takes {step:.0f} ms, as many rectangles {bare:.0f} ms")
            if step < MOST * bare:
                break
        self.assertLess(step, MOST * bare, "milliseconds")
        said = f"Thinned: the map shows {DRAWN:,} of {ROWS:,} blocks, those with most bytes for longest."
        self.assertIn(said, self.text("notes"))
        self.assertIn(f"Of {ROWS:,} blocks the {DRAWN:,} with most bytes for longest are drawn.", self.text("map-note"))
        self.keep("large")
        self.quiet()


if __name__ == "__main__":
    unittest.main()
