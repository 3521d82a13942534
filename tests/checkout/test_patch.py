"""`ci/patch.py`: a series exported, carried over and compared, with a small checkout and the git that is installed."""

import pathlib
import re
import subprocess
import tomllib
import unittest

import test_upstream_pr
from test_upstream_pr import ADDED, HEADER, ODD, PATCHED, PRISTINE, ROOT, sha256

# isort: split
import patch
import patch_git

TWENTY = PRISTINE.replace("number 20\n", "number twenty\n")


class Series(test_upstream_pr.Checkout):
    def setUp(self):
        super().setUp()
        self.versions = tomllib.loads((self.ours / "patches/versions.toml").read_text())
        self.release = self.versions["release"][0]
        self.series = patch_git.patches(self.ours, "2.15.0")

    def open(self, folder=None):
        return patch.Tree(folder or self.tree, self.versions)

    def said(self, function, *words):
        try:
            text = function(*words)
        except patch.Refusal as why:
            text = f"error: {why}\n"
        return text.replace(str(self.folder), "")

    def export(self, folder=None):
        return self.said(patch.export, self.open(folder), self.versions, self.release, self.ours)

    def texts(self):
        return {it.name: it.read_text() for it in (self.ours / "patches/2.15.0").iterdir()}

    def am(self):
        """As the documents have it."""
        self.git("-c", "core.autocrlf=false", "-c", "core.hooksPath=/dev/null", "am", "--quiet", "--no-gpg-sign", *map(str, self.series))

    def test_commits_export_to_the_same_bytes_however_git_is_configured(self):
        self.assertIn("found     HEAD has the header that the release ships\n", self.export())
        self.am()
        self.assertIn("2 patches for torch 2.15.0, in /ours/patches/2.15.0\n", self.export())
        first = self.texts()
        self.assertEqual(first["series"], "say_five.patch\nadd_a_half.patch\n")
        for name, value in ODD.items():
            self.git("config", name, value)
        self.git("-c", "core.autocrlf=false", "reset", "--quiet", "--hard", "HEAD~2")
        self.am()
        self.export()
        self.assertEqual(self.texts(), first)

    def test_a_checkout_without_the_release_s_header(self):
        self.write(f"tree/{HEADER}", TWENTY)
        self.commit("--amend")
        self.assertIn("found     no such header in the last 1 commits\n", self.export())
        clone = self.folder / "clone"
        self.git("clone", "--quiet", "--depth=1", f"file://{self.tree}", str(clone))
        self.assertIn("git fetch --deepen", self.export(clone))

    def test_the_command_that_makes_the_commits_is_typed_as_it_is(self):
        clone = self.folder / "a clone; of 'it'"
        self.git("clone", "--quiet", str(self.tree), str(clone))
        with self.assertRaises(patch.Refusal) as refused:
            patch.export(self.open(clone), self.versions, self.release, self.ours)
        command = re.search("to do +(.*)", str(refused.exception))[1]
        own = {f"GIT_COMMITTER_{name}": "a@b" for name in ("NAME", "EMAIL")}
        subprocess.run(["bash", "-ec", command], cwd=self.ours, env={**test_upstream_pr.os.environ, **own}, capture_output=True, check=True)
        self.assertIn("2 patches for torch 2.15.0", self.export(clone))

    def test_a_patch_has_the_words_of_its_subject_for_its_name(self):
        """As the rule of rules.py wants them."""
        names = {
            "Rename ptr_to_block_ to it": "rename_ptr_to_block_to_it",
            "Make `_x` public": "make_x_public",
            "Say e.g. this. And that": "say_e_g_this_and_that",
            "Größe, as GiB...": "gr_e_as_gib",
        }
        for subject in names:
            self.write(f"tree/{HEADER}", f"{PRISTINE}{subject}\n")
            self.git("commit", "--quiet", "--all", "--message", subject)
        self.export()
        self.assertEqual([it.stem for it in patch_git.patches(self.ours, "2.15.0")], list(names.values()))
        before = self.texts()
        self.write(f"tree/{HEADER}", PATCHED)
        self.git("commit", "--quiet", "--all", "--message", "Make x public!")
        self.assertIn("two commits have the same words in their subjects: make_x_public.patch\n", self.export())
        self.assertEqual(self.texts(), before)

    def test_drift_is_what_git_says(self):
        def look():
            return self.said(patch.drift, self.open(), self.release, self.series)

        said = look()
        self.assertTrue(said.startswith("/tree (version.txt: 2.15.0a0), against the series for torch 2.15.0\nthe header is the one that"), said)
        self.assertTrue(said.endswith("\n2 of 2 patches apply\n"), said)
        newer = f"one more\n{TWENTY}"
        self.write(f"tree/{HEADER}", newer)
        said = look()
        for line in ["the header is not the one that", "say_five.patch: applies\n  Hunk #1 succeeded at 5 (offset 1 line).\n",
                     "add_a_half.patch: does not apply\n", "  Rejected hunk #1.\n", f"  Applied patch {ADDED} cleanly.\n1 of 2 patches apply\n"]:  # fmt: skip
            self.assertIn(line, said)
        self.assertEqual((self.tree / HEADER).read_text(), newer)

    def carry(self, to):
        """The series carried to a header."""
        def files(text):
            return {HEADER: text.encode(), ADDED: b"new\n" if text == PATCHED else None}

        return self.said(patch.carry, self.series, ("torch 2.15.0", files(PRISTINE)), ("torch 2.14.1", files(to)), self.folder / "rebase", "export it")

    def test_what_moved_is_carried_by_git_alone_and_can_be_exported(self):
        moved = f"one more\n{PRISTINE}"
        said = self.carry(moved)
        self.assertRegex(said, r"(?s)2:  .*to do: export it\n$")
        rebased = self.folder / "rebase"
        self.assertEqual((rebased / HEADER).read_text(), f"one more\n{PATCHED}")
        self.release["header_sha256"] = sha256(moved.encode())
        self.export(rebased)
        self.assertIn("@@ -3,7 +3,7 @@", self.texts()["say_five.patch"])
        self.assertIn("is there already", self.carry(moved))

    def test_a_conflict_is_left_to_git(self):
        said, header = self.carry(TWENTY), self.folder / "rebase" / HEADER
        self.assertTrue(said.startswith('error: "Add a half" of the series for torch 2.15.0 does not fit torch 2.14.1 as it is\n'), said)
        self.assertIn(f"a conflict in /rebase/{HEADER}\n", said)
        self.assertRegex(header.read_text(), r"(?s)<<<<<<<.*\|\|\|\|\|\|\|")
        # The first two commands that it names.
        solved = PATCHED.replace("number 20\n", "number twenty\n")
        header.write_text(solved)
        commands = said.split("then ")[1].replace("/rebase", str(self.folder / "rebase")).splitlines()[:2]
        done = subprocess.run(["sh", "-ec", "\n".join(commands)], env={**test_upstream_pr.os.environ, "GIT_EDITOR": "true"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("number twenty", done.stdout)
        self.assertEqual(header.read_text(), solved)

    def test_a_series_that_is_there_already(self):
        self.assertIn("has all of the series", self.carry(PATCHED))

    def test_releases_and_trees(self):
        more = [self.release | {"version": it, "header_sha256": "x", "patched_sha256": "y"} for it in ("2.9.1", "2.9.0")]
        versions = self.versions | {"release": [*more, self.release]}
        for asked, found in [(None, "2.15.0"), ("latest", "2.15.0"), ("2.9", "2.9.1"), ("2.9.0", "2.9.0")]:
            self.assertEqual(patch_git.find(versions, asked)["version"], found)
        for asked in ("2", "2.1", "2.15.", ""):
            with self.assertRaisesRegex(patch.Refusal, "one of 2.9.0, 2.9.1, 2.15.0"):
                patch_git.find(versions, asked)
        with self.assertRaisesRegex(patch.Refusal, "is not a PyTorch source tree"):
            self.open(self.ours)

    def test_commands_in_documents_and_scripts_are_accepted(self):
        listed = subprocess.run(["git", "grep", "-hE", "^[^#]*cargo xtask patch (drift|export|rebase) ", "--", "*.md", "ci/*.sh"], cwd=ROOT, capture_output=True, text=True)
        commands = re.findall(r"cargo xtask patch ((?:drift|export|rebase)[^`|>]*)[`|>]", listed.stdout)
        self.assertGreater(len(commands), 3, listed)
        for command in commands:
            if " --" in command:
                patch.options().parse_args(command.replace('"$tree"', "DIR").split())


if __name__ == "__main__":
    unittest.main()
