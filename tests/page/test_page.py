"""The report's page in a real browser: it opens, answers the hand, and asks nobody for anything."""

import json
import pathlib
import pickle
import unittest

from pages import SOURCES, Pages, fetched, trace


class Page(Pages):
    def test_it_shows_the_trace_and_asks_nobody(self) -> None:
        self.open(self.small)
        self.assertIn("2,000 requests", self.text("facts"))
        self.assertIn("a plan", self.text("allocators"))
        self.assertIn("MiB", self.text("at-peak"))
        self.assertEqual(len(fetched), 1, fetched)
        self.keep("small")
        self.quiet()

    def test_it_is_as_wide_as_a_phone_whatever_its_words_are(self) -> None:
        file = trace(self.folder / ("long_" * 30 + ".jsonl"), 2000)
        self.open(self.report(file, "--time-limit", "1"))
        word = "x" * 300
        for of in ("#findings dd", "#recommendation p", "#facts", "#made", "#peak-how", "#block", "#map-note"):
            self.page.evaluate(f"for (const it of document.querySelectorAll({of!r})) it.textContent += {word!r}")
        self.page.evaluate(f"document.querySelector('#map-of option').textContent = {word!r}")
        self.page.set_viewport_size({"width": 390, "height": 844})
        self.frame()
        self.keep("phone")
        self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 390)

    def test_a_finding_says_what_it_is_its_evidence_and_what_to_do_apart(self) -> None:
        size, lines = (1 << 20) + 4096, ['{"format":"pinbuddy-trace","version":3}']
        for number in range(1, 400):
            lines.append(json.dumps({"t": 2 * number, "op": "alloc", "id": number, "bytes": size}))
            if number > 40:
                lines.append(json.dumps({"t": 2 * number + 1, "op": "free", "id": number - 40}))
        file = self.folder / "powers.jsonl"
        file.write_text("\n".join(lines) + "\n")
        self.open(self.report(file, "--time-limit", "1"))
        self.keep("findings")
        said = self.page.evaluate("[...document.querySelectorAll('#findings dt')].map((it) => it.textContent).join()")
        self.assertTrue(said.startswith("evidence,to do"), said)
        self.assertIn(f"the most frequent size is 1.00 MiB ({size} bytes, 399 times), for which stock pins 2.00 MiB", self.text("findings"))

    def test_limits_of_the_run_are_drawn_where_they_are_near(self) -> None:
        header, rest = (self.folder / "small.jsonl").read_text().split("\n", 1)
        drawn = []
        for limit in (2 << 30, 1 << 50):
            told = json.loads(header) | {"group_limit": limit, "settings": {"BUDDY_MAX_MB": limit >> 21}}
            file = self.folder / f"{limit}.jsonl"
            file.write_text(f"{json.dumps(told)}\n{rest}")
            self.open(self.report(file, "--time-limit", "1"))
            drawn.append(self.pixels("curves"))
            self.keep("limits" if limit == 2 << 30 else "no-limits")
            self.quiet()
        self.assertNotEqual(*drawn)

    def test_waits_of_the_run_itself_are_marked_and_said(self) -> None:
        events = (self.folder / "small.jsonl").read_text().split("\n", 1)[1]
        header = {"format": "pinbuddy-trace", "version": 5, "torch": "2.15.0"}
        lines, waits = [json.dumps(header)], {400: 20_000, 1200: 25_000, 1800: 300}
        for line in events.splitlines():
            lines.append(line)
            it = json.loads(line)
            if it["op"] == "alloc" and it["id"] in waits:
                wait = {"t": it["t"], "op": "wait", "id": it["id"], "took": waits[it["id"]], "thread": it["thread"]}
                lines.append(json.dumps(wait))
        lines.append(json.dumps({"t": it["t"], "op": "wait", "took": 5_000}))
        old = "\n".join(it for it in lines if '"wait"' not in it).replace('"version": 5', '"version": 4')
        drawn = set()
        for version, said in ((5, "waited for the driver 4 times, 50.30 ms in all; longest 25.00 ms at"), (4, "does not say")):
            file = self.folder / f"waited-{version}.jsonl"
            file.write_text(("\n".join(lines) if version == 5 else old) + "\n")
            self.open(self.report(file, "--time-limit", "1"))
            self.assertIn(said, self.text("waited"))
            self.assertEqual("this run" in self.text("allocators"), version == 5)
            drawn.add(self.pixels("curves"))
            if version == 5:
                self.keep("waited")
                self.assertIn("After the first iteration: 3 times, 30.30 ms in all.", self.text("waited"))
                self.assertIn("4, 50.30 ms", self.text("allocators"))
                self.assertNotIn("not recorded", self.text("allocators"))
                self.hover_waits()
            self.quiet()
        self.assertEqual(len(drawn), 2)

    def hover_waits(self) -> None:
        """Where a wait is marked, the pointer is told of it."""
        box = self.page.evaluate("(() => { const canvas = document.getElementById('curves'); canvas.scrollIntoView({ block: 'center' }); const it = canvas.getBoundingClientRect(); return [it.x, it.y, it.width, it.height]; })()")
        said = set()
        for across in range(70, int(box[2]) - 150, 2):
            self.page.mouse.move(box[0] + across, box[1] + box[3] / 2)
            self.frame()
            said.update(it for it in self.text("curves-hint").split("\n") if "for the driver" in it)
        self.assertEqual(len(said), 4, said)
        self.assertIn("thread 0 waits 5.00 ms for the driver, while memory was given back", said)
        self.assertRegex(" ".join(said), r"thread [012] waits 20\.00 ms for the driver, for .*iB")

    def test_a_slider_changes_the_curve_and_what_is_said(self) -> None:
        self.open(self.small)
        move = """(() => {{ const it = document.querySelector('#settings input[name={}]');
            it.value = {}; it.dispatchEvent(new Event('input')); }})()"""
        before = self.text("came-to"), self.text("lab-lines"), self.pixels("tried")
        self.page.evaluate(move.format("block", 0))
        self.page.evaluate(move.format("count", 5))
        after = self.text("came-to"), self.text("lab-lines"), self.pixels("tried")
        for one, other in zip(before, after, strict=True):
            self.assertNotEqual(one, other)
        self.assertIn("BUDDY_BLOCK_SIZE_MB=64\nexport BUDDY_BLOCK_COUNT=8", after[1])
        self.page.select_option("#growth", "exact")
        self.assertIn("BUDDY_GROWTH=exact", self.text("lab-lines"))
        self.assertTrue(self.page.evaluate("document.querySelector('[name=block]').disabled"))
        self.quiet()

    def test_axes_are_labelled_without_noughts_behind_the_point(self) -> None:
        self.open(self.small)
        # The page's scripts are a module, so their names are not the window's.
        text = (SOURCES / "data.js").read_text()
        times = (20_000, 100_000, 2_500_000, 600_000_000, 200)
        said = [self.page.evaluate(f"(() => {{ {text}; return shortTime({us}); }})()") for us in times]
        self.assertEqual(said, ["20 ms", "100 ms", "2.5 s", "10 min", "200 µs"])
        sizes = (64 << 20, 1 << 30, 5 << 28, 100 << 20)
        said = [self.page.evaluate(f"(() => {{ {text}; return shortBytes({bytes}); }})()") for bytes in sizes]
        self.assertEqual(said, ["64 MiB", "1 GiB", "1.25 GiB", "100 MiB"])

    def test_fragmentation_is_that_of_the_allocator_whose_map_is_shown(self) -> None:
        self.open(self.small)
        rows = self.page.evaluate("""[...document.querySelectorAll('#allocators tr')].map((row) => [...row.cells].map((it) => it.textContent))""")
        columns = [rows[0].index(it) for it in ("allocator", "not live at the peak", "largest free run then")]
        table = {row[columns[0]]: [row[it] for it in columns[1:]] for row in rows[1:]}
        drawn = set()
        for name in ("stock", "pinbuddy", "pinbuddy, exact growth"):
            self.page.select_option("#map-of", name)
            idle, run = table[name]
            said = f"{name}: when most was live, {idle} more were pinned, free or lost to rounding; the largest free run was {run}."
            self.assertIn(said, self.text("gaps-how"))
            drawn.add(self.pixels("gaps"))
        self.assertEqual(len(drawn), 3)
        self.assertEqual(table["#181094"][1], "", "it has no map")
        self.page.select_option("#map-of", "a plan")
        self.assertIn("a plan: when most was live", self.text("gaps-how"), "the plan has places")
        self.assertFalse(self.page.evaluate("document.getElementById('gaps').hidden"))
        self.quiet()

    def test_of_device_memory_it_says_what_would_be_reserved(self) -> None:
        lines = ['{"format":"pinbuddy-trace","version":4,"memory":"device"}']
        for number in range(1, 21):
            lines.append(json.dumps({"t": 2 * number, "op": "alloc", "id": number, "bytes": (20 + number) << 20, "device": 0, "stream": 0}))
            lines.append(json.dumps({"t": 2 * number + 1, "op": "free", "id": number}))
        file = self.folder / "device.jsonl"
        file.write_text("\n".join(lines) + "\n")
        self.open(self.report(file))
        said = self.page.evaluate("document.body.innerText")
        for word in ("pinned", "waited", "waits for the driver", "undefined", "The map"):
            self.assertNotIn(word, said)
        names = self.page.evaluate("[...document.querySelectorAll('#allocators td:first-child')].map((it) => it.textContent)")
        self.assertEqual(names[:2], ["stock", "expandable segments"])
        self.quiet()

    def test_a_snapshot_is_drawn_at_its_own_addresses(self) -> None:
        event = {"stream": 0, "frames": []}
        base, mib, trace = 0x7F00_0000_0000, 1 << 20, []
        for number in range(3):
            trace.append(event | {"action": "segment_alloc", "addr": base + (number << 30), "size": 64 * mib, "time_us": number})
        for number in range(60):
            where = {"addr": base + (number % 3 << 30) + number // 3 * 3 * mib, "size": 2 * mib}
            trace.append(event | where | {"action": "alloc", "time_us": 10 + number})
        file = self.folder / "own.pickle"
        file.write_bytes(pickle.dumps({"device_traces": [trace], "segments": []}))
        self.open(self.report(file))
        self.assertEqual(self.page.evaluate("document.getElementById('map-of').value"), "as recorded")
        self.assertIn("in 3 ranges", self.text("map-note"))
        self.page.evaluate("document.getElementById('map').scrollIntoView()")
        # Towards the end, where most of them live.
        box = self.page.evaluate("(() => { const it = document.getElementById('map').getBoundingClientRect(); return [it.right - 180, it.top, it.height]; })()")
        said = set()
        for part in range(5, 95):
            self.page.mouse.move(box[0], box[1] + box[2] * part / 100)
            self.frame()
            if not self.page.evaluate("document.getElementById('map-hint').hidden"):
                said.update(line[5:] for line in self.text("map-hint").split("\n") if line.startswith("at 0x"))
        there = {f"{it['addr']:x}" for it in trace if it["action"] == "alloc"}
        self.assertGreater(len(said), 20)
        self.assertLessEqual(said, there, "each is an address of the file")
        self.keep("snapshot")
        self.quiet()
        self.open(self.report(file), width=390, height=800, dark=True)
        self.keep("snapshot-phone")

    def test_a_hostile_name_is_a_name(self) -> None:
        folder = self.folder / "<script>"
        folder.mkdir()
        file = trace(folder / "script><img src=x onerror=alert(1)>.jsonl", 50)
        page = self.report(file, "--compare", str(file))
        self.open(page)
        self.assertTrue(self.text("title").endswith("<script>/script><img src=x onerror=alert(1)>.jsonl"))
        self.assertEqual(self.page.evaluate("document.querySelectorAll('img').length"), 0)
        self.assertIn("ratio", self.text("compared"))
        self.quiet()


if __name__ == "__main__":
    unittest.main()
