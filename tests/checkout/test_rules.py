"""This checkout keeps its rules, and each rule complains of what breaks it."""

import unittest

import rules
from messages import messages
from rules import CI_PAGE, HOSTS, LONGEST, SETTINGS, SIMULATOR_PAGE

FILES = rules.checkout()
WORKFLOW = ".github/workflows/a.yml"
BASH = "#!/usr/bin/env bash\n# A.\n"


def patch(subject, diff, by="pinbuddy developers <pinbuddy@localhost>", why="Why.\n\n", forwarded="no"):
    head = f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: {by}\nDate: x\nSubject: [PATCH] {subject}\n\n"
    return f"{head}{why}Reason: a test\nForwarded: {forwarded}\n\n{diff}"


def series(text, name="open_it.patch"):
    """A release's series of one patch."""
    return {"patches/versions.toml": '[[release]]\nseries = "2"\n', "patches/2/series": f"{name}\n", f"patches/2/{name}": text}


class ThisCheckout(unittest.TestCase):
    def test_its_files_are_found(self):
        self.assertGreater(len(FILES), 500)
        self.assertGreater(sum(map(rules.is_workflow, FILES)), 3)
        self.assertGreater(sum(it.endswith(".patch") for it in FILES), 20)

    def test_it_keeps_each_rule(self):
        for rule in (rules.shape, rules.safe_crates, rules.integration_tests, rules.workflows, rules.documents, rules.links, rules.patches, messages):
            with self.subTest(rule.__name__):
                self.assertEqual([*rule(FILES)], [])


class WhatBreaksARule(unittest.TestCase):
    def complaints(self, rule, files, *expected):
        said = [*rule(files)]
        self.assertEqual(len(said), len(expected), said)
        for complaint, part in zip(said, expected, strict=True):
            self.assertIn(part, complaint)

    def test_shape_of_sources(self):
        folder = "/ro" + "ot/x"
        files = {"a.rs": "use std;\n", "b.cpp": '#include "a.h"\n', "c.sh": "#!/bin/bash\nset -e \n", "d.py": f"# d\n\tx\ny = '{folder}'\n"}
        files |= {"f.h": "// f\n" * (LONGEST + 1), "README.md": f"{HOSTS[0]}\nend", "g.snap": "\t \n", "x.rs": "//! A.\n"}
        heads = ["a.rs:1: no comment", "b.cpp:1: no comment", "c.sh:1: no comment"]
        self.complaints(rules.shape, files, *heads, "c.sh:2: a tab", "d.py:2: a tab", "d.py:3: a folder", "f.h: 401 lines", HOSTS[0], "does not end")

    def test_crates_that_allow_unsafe_code(self):
        files = {f"{crate}/src/lib.rs": "#![forbid(unsafe_code)]" for crate in rules.SAFE[1:]}
        self.complaints(rules.safe_crates, files, rules.SAFE[0])

    def test_integration_tests_that_never_run(self):
        files = {"a/tests/all.rs": "//! A.\n\nmod one;\n", "a/tests/one.rs": "", "a/tests/two.rs": "", "b/tests/three.rs": ""}
        self.complaints(rules.integration_tests, files, "a/tests/two.rs:1: a/tests/all.rs has no `mod two;`")

    def test_workflows(self):
        text = "    runs-on: x\n    steps:\n      - run: ci/lint.sh\n      - run: |\n          curl x | sh\n"
        self.complaints(rules.workflows, {WORKFLOW: text}, ":4: a command", "timeout-minutes")

    def test_what_documents_name(self):
        files = {SETTINGS: 'variable("BUDDY_LOG")\n#[cfg(test)]\n"BUDDY_LOK"', SIMULATOR_PAGE: "| `PINBUDDY_SIM_A=1` |\n"}
        files |= {"tests/cuda-sim/src/a.rs": 'is("PINBUDDY_SIM_A"); is("PINBUDDY_SIM_B")', CI_PAGE: "| `a.yml` | `ci/a.sh` |\n"}
        files |= {"CHANGELOG.md": "`BUDDY_OLD`\n", "docs/x.md": "`BUDDY_LOG=off`, `BUDDY_*`, ci/a.sh, ci/gone.sh\n`BUDDY_LOK=off`\n"}
        files |= {WORKFLOW: "# A.\n", ".github/workflows/b.yml": "# B.\n", "ci/a.sh": BASH, "ci/b.sh": BASH}
        expected = ["no row explains PINBUDDY_SIM_B", "x.md:1: there is no ci/gone.sh", "x.md:2: BUDDY_LOK is no setting", "b.yml", "ci/b.sh"]
        self.complaints(rules.documents, files, *expected)

    def test_links_of_documents(self):
        files = {"README.md": "[a](docs/x.md#what-it-does-1) [b](docs/gone.md)\n```\n[c](c.md)\n```\n[d](https://d.e/f)"}
        files |= {"docs/x.md": "# X\n## What `it` does: 1\n[up](../README.md) [here](#here) [there](x.md#x)\n"}
        expected = ["README.md: there is no docs/gone.md", "docs/x.md: docs/x.md has no heading here"]
        self.complaints(lambda all_files: rules.links(all_files, all_files.__contains__), files, *expected)

    def test_patches(self):
        diff = "diff --git a/c10/a.h b/c10/a.h\n--- a/c10/a.h\n+++ b/c10/a.h\n@@ -1,5 +1,66 @@\n-int a;\n+int b;\n" + "+x\n" * 61 + " b\n c\n d\n e\n"
        diff += "--- a/setup.py\n+++ b/setup.py\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/c10/b.h\n@@ -0,0 +1,3 @@\n+a\n+b\n+c\n"
        good = patch("Open\n it", diff.replace("+x\n", "").replace(" e\n", "").replace("5 +1,66", "4 +1,4").replace("setup.py", "c10/c.h"))
        files = series(good)
        self.complaints(rules.patches, files)
        files["patches/2/series"] += "seam.patch\nseam.patch\ngone.patch\n"
        files |= {"patches/2/other.patch": good, "patches/2/seam.patch": patch("Open it: all", diff, by="somebody", why="", forwarded="")}
        expected = ["seam.patch is named twice", "gone.patch is named twice, is no .patch, or is not there", "other.patch: series does not name it"]
        expected += ["expected 'From: pinbuddy", "would name it open_it_all.patch", "does not say why", '"Forwarded: …"']
        expected += ["hunk 1 of c10/a.h has more than 3 lines", "setup.py is no header", "patches/2: changes 65 lines"]
        self.complaints(rules.patches, files, *expected)

    def test_lines_that_git_counts(self):
        begin = "--- a/c10/a.h\n+++ b/c10/a.h\n"
        many, ending = "+x\n" * 61, "\\ No newline at end of file\n"
        for hunk in [f"@@ -1 +1,61 @@\n-a\n{ending}{many}", f"@@ -1,3 +1,64 @@\n a\n\n{many} c\n", f"@@ -1 +1,61 @@\n--- a/\n{many}{ending}"]:
            self.complaints(rules.patches, series(patch("Open it", begin + hunk)), "patches/2: changes 61 lines")
        self.complaints(rules.patches, series(patch("Open it", f"{begin}@@ -1,2 +1,2 @@\n a\n--- a/c10/b.h\n+++ b/setup.py\n")))
        self.complaints(rules.patches, series(patch("Open it", f"{begin}@@ -1,5 +1,5 @@\n a\n\n\n \n-b\n+b\n{ending}")), "hunk 1 of c10/a.h has more than 3 lines")

    def test_files_that_git_changes(self):
        good, hunk = "--- a/c10/a.h\n+++ b/c10/a.h\n@@ -1 +1 @@\n-a\n+b\n", "@@ -1 +1 @@\n-a\n+b\n"
        for diff, *expected in [
            ("--- x/setup.py\n+++ y/setup.py\n" + hunk, "git finds '1\\t1\\tsetup.py\\x00' in it", "y/setup.py is no header"),
            (good + "--- /dev/null\t1970\n+++ b/setup.py\n@@ -0,0 +1 @@\n+b\n", "setup.py is no header"),
            (good + "--- a/c10/b.h\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "git finds", "/dev/null is no header"),
            (good + "diff --git a/c10/x.h b/setup.py\nsimilarity index 100%\nrename from c10/x.h\nrename to setup.py\n", "setup.py"),
            (good.replace("-1 ", "-1,9 "), "git finds"),
            ("", "git finds"),
        ]:
            self.complaints(rules.patches, series(patch("Open it", diff)), *expected)
        files = series("anything")
        files |= {"patches/2/open_it.diff": files.pop("patches/2/open_it.patch"), "patches/2/series": "open_it.diff\n"}
        self.complaints(rules.patches, files, "open_it.diff is named twice, is no .patch")

    def test_names_of_patches(self):
        diff = "--- a/c10/a.h\n+++ b/c10/a.h\n@@ -1 +1 @@\n-a\n+b\n"
        for subject, name in [
            ("Rename ptr_to_block_ to it", "rename_ptr_to_block_to_it"),
            ("Make `_x` public", "make_x_public"),
            ("Say e.g. this.\n And that", "say_e_g_this_and_that"),
            ("=?UTF-8?q?Gr=C3=B6=C3=9Fe?=\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8", "gr_e"),
        ]:
            self.complaints(rules.patches, series(patch(subject, diff), f"{name}.patch"))

    def test_messages_without_an_explanation_and_the_other_way_round(self):
        files = {
            "cxx-bridge/src/a.rs": 'say("one thing and \\\n     another")',
            "cxx-bridge/cpp/b.cpp": '  TORCH_WARN("bad: ", why);\n  TORCH_WARN("a third, "\n    "and a fourth",\n    " (see: pinbuddy explain \'third, and a\')");',
            "cxx-bridge/python/f.py": "raise ValueError(\"worse (see: pinbuddy explain 'nothing')\")\n\nraise RuntimeError(\n    \"worst\"\n)",
            "cxx-bridge/src/d.rs": 'log::warn(|| "one thing and another");\nlog::warn(|| "a sixth thing");\n#[cfg(test)]\nlog::warn(|| "a test")',
            "xtask/c.rs": '"a fifth"',
            "docs/troubleshooting.md": "### `thing and another`\n### `third, and a`\n### `a fifth`\n### By message\n",
        }
        expected = ["md:3: nothing says 'a fifth'", "b.cpp: no pointer", "f.py: no pointer", "no heading 'nothing'", "'a sixth thing'"]
        self.complaints(messages, files, *expected)


if __name__ == "__main__":
    unittest.main()
