"""`ci/upstream_pr.py`: proposals for a small checkout, with the git that is installed."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "ci"))
import upstream_pr  # noqa: E402
import upstream_text  # noqa: E402

# Those of a hook or of `git rebase -x` would send what is done here to the repository that they name.
for name in subprocess.run(["git", "rev-parse", "--local-env-vars"], check=True, capture_output=True, text=True).stdout.split():
    os.environ.pop(name, None)

HEADER, ADDED, NOTE = "aten/src/ATen/core/A.h", "aten/src/ATen/core/B.h", "docs/note.md"
PRISTINE = "".join(f"line number {it}\n" for it in range(1, 31))
PATCHED = PRISTINE.replace("number 5\n", "number five\n").replace("number 20\n", "number 20\nline number 20.5\n")
SERIES = {
    "say_five": ("Say five", f"--- a/{HEADER}\n+++ b/{HEADER}\n@@ -4,3 +4,3 @@\n line number 4\n-line number 5\n+line number five\n line number 6\n"),
    "add_a_half": ("Add a half", f"--- a/{HEADER}\n+++ b/{HEADER}\n@@ -19,4 +19,5 @@\n line number 19\n line number 20\n+line number 20.5\n"
                   f" line number 21\n line number 22\n--- /dev/null\n+++ b/{ADDED}\n@@ -0,0 +1 @@\n+new\n"),
}  # fmt: skip
BENCH = {"hit_pair_ratio": {"8MiB": 0.25}, "context": {"date": "2026-11-22", "processor": "P", "cores": 2, "memory_mib": 4, "cuda": "simulated",
         "fork": "2.15.0+f", "spread": {"hit_pair_ratio": {"8MiB": [0.2, 0.3]}}}}  # fmt: skip
# Settings of a checkout that would change commits and patches if git read them.
ODD = {
    "core.autocrlf": "true", "core.hooksPath": "/nowhere", "commit.gpgsign": "true", "diff.noprefix": "true", "diff.context": "7",
    "format.attach": "x", "format.coverLetter": "true", "format.headers": "X-Header: x", "format.numbered": "true",
    "format.outputDirectory": "/nowhere", "format.signOff": "true", "i18n.commitEncoding": "ISO-8859-1",
}  # fmt: skip


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def files(folder: pathlib.Path) -> dict:
    return {it: sha256(it.read_bytes()) for it in folder.rglob("*") if it.is_file()}


class Checkout(unittest.TestCase):
    """A small checkout of PyTorch's, and ours with its series."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.ours, self.tree, self.out = (self.folder / it for it in ("ours", "tree", "out"))
        self.write("ours/patches/versions.toml", f'header = "{HEADER}"\npull_request = "upstream"\n[[release]]\nversion = "2.15.0"\n'
                   f'header_sha256 = "{sha256(PRISTINE.encode())}"\npatched_sha256 = "{sha256(PATCHED.encode())}"\n'
                   'series = "2.15.0"\nsource_series = ["source"]\n')  # fmt: skip
        for name, (subject, diff) in SERIES.items():
            self.patch("2.15.0", name, subject, diff)
        for name, subject, line in [("upstream", "Note it", "of two lines"), ("source", "Build it", "on building")]:
            self.patch(name, "one", subject, f"--- a/{NOTE}\n+++ b/{NOTE}\n@@ -1,1 +1,2 @@\n a note\n+{line}\n")
        self.write("bench.json", json.dumps(BENCH))
        self.write("tree/version.txt", "2.15.0a0\n")
        self.write(f"tree/{HEADER}", PRISTINE)
        self.write(f"tree/{NOTE}", "a note\n")
        self.git("init", "--quiet", "--initial-branch=main")
        self.identify(self.tree)
        self.commit()

    def write(self, path, text):
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def patch(self, folder, name, subject, diff):
        head = f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: pinbuddy developers <pinbuddy@localhost>\nDate: Sat, 21 Nov 2026 00:00:00 +0000\n"
        self.write(f"ours/patches/{folder}/{name}.patch", f"{head}Subject: [PATCH] {subject}\n\nWhy.\n\nReason: a test\nForwarded: no\n\n{diff}")
        with open(self.folder / f"ours/patches/{folder}/series", "a") as series:
            series.write(f"{name}.patch\n")

    def git(self, *words, at=None):
        done = subprocess.run(["git", "-C", at or self.tree, *words], check=True, capture_output=True, text=True)
        return done.stdout

    def identify(self, at):
        self.git("config", "user.name", "Some One", at=at)
        self.git("config", "user.email", "some@one", at=at)

    def commit(self, *more):
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "x", *more)


class Proposals(Checkout):
    def propose(self, *more, source=None):
        """What is said, without the folder's name and that of a commit, which has the time in it."""
        words = ["--source", str(source or self.tree), "--out", str(self.out), "--bench", str(self.folder / "bench.json"), *more]
        with tempfile.TemporaryDirectory() as own:
            try:
                said = upstream_pr.propose(upstream_pr.options().parse_args(words), pathlib.Path(own), self.ours)
            except upstream_pr.Refusal as why:
                said = f"error: {why}\n"
        return re.sub(r"\([0-9a-f]{12}\)", "(HASH)", said.replace(str(self.folder), ""))

    def show(self, name, at=None):
        return self.git("show", name, at=at)

    def test_a_branch_and_patches_and_nothing_else_changes(self):
        # What somebody is working on: staged, changed and new.
        self.write("tree/staged.txt", "staged\n")
        self.git("add", "staged.txt")
        self.write(f"tree/{NOTE}", "another note\n")
        self.write("tree/new.txt", "new\n")
        clone, branch = self.folder / "clone", "host-allocator-subclass"
        self.git("clone", "--quiet", ".", str(clone))
        for name, value in ODD.items():
            self.git("config", name, value)

        def kept():
            return {it: of for it, of in files(self.tree).items() if ".git/objects/" not in str(it) and not it.match(f"refs/heads/{branch}")}

        before = kept()
        said = self.propose()
        self.assertEqual(before, kept(), said)
        self.assertEqual(said, """\
the extension points, by the series for torch 2.15.0
  checkout  /tree
  base      HEAD (HASH)
  branch    host-allocator-subclass, 3 commits:
    Say five
    Add a half
    Note it
  patches   /out/*.patch, /out/PR_BODY.md
  not in it, since no commit has them, and left as they are:
     M docs/note.md
not tested: cargo xtask test --only seam, then run this again
before it is opened: PyTorch takes pull requests for issues that are labelled actionable; see #181094
""")  # fmt: skip
        messages = self.git("log", "--reverse", "--format=%an <%ae> %cn%n%B", f"main..{branch}")
        each = [f"Some One <some@one> Some One\n{it}\n\nWhy.\n\n" for it in ("Say five", "Add a half", "Note it")]
        self.assertEqual(messages, "".join(each))
        for path, text in {HEADER: PATCHED, ADDED: "new\n", NOTE: "a note\nof two lines\n"}.items():
            self.assertEqual(self.show(f"{branch}:{path}"), text)
        names = ["0001-Say-five.patch", "0002-Add-a-half.patch", "0003-Note-it.patch", "PR_BODY.md"]
        self.assertEqual(sorted(it.name for it in self.out.iterdir()), names)
        self.identify(clone)
        self.git("am", "--quiet", "--committer-date-is-author-date", *(str(self.out / it) for it in names[:3]), at=clone)
        self.assertEqual(self.git("rev-parse", "HEAD", at=clone), self.git("rev-parse", branch), "the patches make the same commits")
        body = (self.out / "PR_BODY.md").read_text()
        for part in [
            "Related to #181094.\n",
            "## What\n\n**Say five**\n\nWhy.\n\n**Add a half**\n\nWhy.\n\n**Note it**\n\nWhy.\n\n## What stays as it is\n",
            "```\n\nNot run on these patches yet: `cargo xtask test --only seam`.\n\n## Benchmark\n",
            "beside the built-in allocator. Measured on 2026-11-22: P, 2 cores, 4 MiB, CUDA simulated, torch 2.15.0+f;",
            "| allocate + free, 8 MiB, time, over stock's | 0.25 (0.20 to 0.30) |\n\ncc\n",
        ]:
            self.assertIn(part, body)

    def test_results_are_those_of_these_patches(self):
        hashes = {f"{name}.patch": sha256((self.ours / f"patches/2.15.0/{name}.patch").read_bytes()) for name in SERIES}
        hashes["one.patch"] = sha256((self.ours / "patches/upstream/one.patch").read_bytes())
        for number, (patches, said) in enumerate([(hashes, "- a test: 3 of 3 passed\n"), ({**hashes, "one.patch": "ab"}, "Not run on these patches yet")]):
            self.write("ours/target/upstream/seam.json", json.dumps({"patches": patches, "on": "torch 2", "results": ["a test: 3 of 3 passed"]}))
            self.out = self.folder / f"out{number}"
            self.propose("--branch", f"branch{number}")
            self.assertIn(said, (self.out / "PR_BODY.md").read_text())

    def test_kept_results_of_another_shape_are_none(self):
        kept = self.folder / "seam.json"
        for text in ["", "[]", "{}", '{"patches": {}}', '{"patches": {}, "on": 1, "results": ["x"]}', '{"patches": {}, "on": "x", "results": "x"}',
                     '{"patches": {}, "on": "x", "results": []}', '{"patches": {}, "on": "x", "results": ["x", 1]}', '{"patches": [], "on": "x", "results": ["x"]}']:  # fmt: skip
            kept.write_text(text)
            self.assertIsNone(upstream_text.tested(kept, []), text)
        kept.write_text('{"patches": {}, "on": "x", "results": ["y"]}')
        self.assertIn("- y\n", upstream_text.tested(kept, []))

    def test_a_dry_run_changes_no_file_at_all_and_a_link_to_an_empty_folder_is_that_folder(self):
        before = files(self.folder)
        said = self.propose("--dry-run")
        self.assertEqual(files(self.folder), before)
        self.assertTrue(said.endswith("nothing was changed (--dry-run)\n") and "3 commits" in said, said)
        real = self.folder / "real"
        real.mkdir()
        self.out.symlink_to(real)
        self.assertIn("3 commits", self.propose())
        self.assertTrue(self.out.is_symlink() and (real / "PR_BODY.md").is_file())

    def test_another_base_branch_and_form(self):
        self.git("checkout", "--quiet", "-b", "other")
        self.write("tree/.github/PULL_REQUEST_TEMPLATE.md", "Fixes #ISSUE\n\n[ ] I have read it.\n")
        # A header that no release ships, with the series' lines as they were.
        self.write(f"tree/{HEADER}", PRISTINE + "more\n")
        self.commit()
        self.git("checkout", "--quiet", "main")
        said = self.propose("--base", "other", "--branch", "mine")
        self.assertIn("a header that is another than that release's", said)
        self.assertEqual((self.tree / HEADER).read_text(), PRISTINE, "main is still checked out")
        self.assertEqual(self.show(f"mine:{HEADER}"), PATCHED + "more\n")
        body = (self.out / "PR_BODY.md").read_text()
        self.assertTrue(body.endswith("\n[ ] I have read it.\n") and "Fixes #ISSUE" not in body, body)

    def test_shallow_and_partial_clones(self):
        """One that has the last commit only, and one that has no file until git reads it."""
        self.commit("--allow-empty")
        for name in ["allowFilter", "allowAnySHA1InWant"]:
            self.git("config", f"uploadpack.{name}", "true")
        for option, found in [("--depth=1", "a shallow clone, without it"), ("--filter=blob:none", "no branch, tag")]:
            clone, self.out = self.folder / option, self.folder / f"out{option}"
            self.git("clone", "--quiet", "--no-checkout", option, f"file://{self.tree}", str(clone))
            self.identify(clone)
            self.assertIn("3 commits", self.propose(source=clone))
            self.assertEqual(self.show(f"host-allocator-subclass:{HEADER}", at=clone), PATCHED)
            self.assertIn(found, self.propose("--base", "v2.15.0", source=clone))

    def test_what_is_refused_changes_nothing(self):
        def refused(said, *more, source=None):
            before = files(self.folder)
            told = self.propose(*more, source=source)
            self.assertTrue(told.startswith("error: "), told)
            self.assertIn(said, told)
            self.assertEqual(files(self.folder), before)

        refused("/tree/nowhere is not a git checkout\n  found     no folder\n", source=self.tree / "nowhere")
        refused("found     a folder within /tree\n", source=self.tree / "docs")
        refused("there is no v9.9 in /tree\n  found     no branch, tag or commit of that name\n", "--base", "v9.9")
        refused("/tree has a branch main already\n", "--branch", "main")
        refused('"a b" is no name for a branch\n', "--branch", "a b")
        refused("/tree is in the way\n", "--out", str(self.tree))
        refused("version.txt has no results of a benchmark\n", "--bench", str(self.tree / "version.txt"))
        for how in [[], ["--dry-run"]]:
            refused("/bench.json/a/b cannot be made: /bench.json is no folder", "--out", str(self.folder / "bench.json/a/b"), *how)
        refused(" cannot be written\n", "--out", str(self.folder / ("x" * 300)))
        one = {"hit_pair_ratio": {"8MiB": 0.25}}
        for results, said in [
            ([], "none of the figures"),
            (one, "no date, processor, cores, memory_mib, cuda, fork in its context"),
            ({**BENCH, "context": {it: of for it, of in BENCH["context"].items() if it != "fork"}}, "no fork in its context"),
            ({**BENCH, "hit_pair_ratio": {"8MiB": "0.25"}}, "hit_pair_ratio/8MiB: '0.25'"),
            ({**BENCH, "hit_pair_ratio": {"8MiB": [1]}}, "hit_pair_ratio/8MiB: [1]"),
            ({**one, "context": {**BENCH["context"], "spread": {"hit_pair_ratio": {"8MiB": 2}}}}, "hit_pair_ratio/8MiB: 0.25, with the spread 2"),
            ({**one, "context": {**BENCH["context"], "spread": {"hit_pair_ratio": {"8MiB": [2]}}}}, "hit_pair_ratio/8MiB: 0.25, with the spread [2]"),
        ]:
            self.write("other.json", json.dumps(results))
            refused(f"/other.json has no results of a benchmark\n  found     {said}", "--bench", str(self.folder / "other.json"))
        for text, said in [(PRISTINE.replace("number 20\n", "number twenty\n"), "add_a_half.patch does not apply\n  found     error: while searching for:"),
                           (PATCHED, "there is nothing to propose for /tree\n")]:  # fmt: skip
            self.write(f"tree/{HEADER}", text)
            self.commit()
            refused(said)
        self.write(f"tree/{HEADER}", PRISTINE)
        self.write(f"tree/{NOTE}", "no note\n")
        self.commit()
        refused("patches/upstream/one.patch does not apply\n")
        versions = self.ours / "patches/versions.toml"
        versions.write_text(versions.read_text().replace(sha256(PATCHED.encode()), "ab" * 32))
        refused("is not what patches/versions.toml pins\n")
        (self.tree / "version.txt").write_text("2.14.1\n")
        versions.write_text(versions.read_text() + versions.read_text().split("\n", 2)[2].replace("2.15.0", "2.16.0").replace(sha256(PRISTINE.encode()), "cd" * 32))
        refused("PyTorch takes pull requests for its main branch, not for 2.15.0\n")

    def test_the_whole_fork_with_our_files(self):
        """`--kind full`: the series for source builds, and our own files."""
        self.write("ours/Cargo.toml", '[workspace]\nresolver = "3"\nmembers = ["rust-core/engine", "cxx-bridge", "xtask"]\n[workspace.package]\nversion = "0.1.0"\n')
        bridge = '[features]\ntorch = []\n[dependencies]\npinbuddy-core.path = "../rust-core/engine"\n'
        lock = "version = 4\n"
        for folder, name, more, needs in [
            ("cxx-bridge", "pinbuddy-bridge", bridge, 'dependencies = ["pinbuddy-core"]\n'),
            ("rust-core/engine", "pinbuddy-core", "", ""),
            ("xtask", "xtask", "", ""),
        ]:
            package = f'name = "{name}"\nversion = "0.1.0"\n'
            lock += f"\n[[package]]\n{package}{needs}"
            self.write(f"ours/{folder}/Cargo.toml", f'[package]\n{package}edition = "2024"\n{more}')
            self.write(f"ours/{folder}/src/lib.rs", "")
        for name, text in {"LICENSE": "text\n", "NOTICE": "text\n", "Cargo.lock": lock}.items():
            self.write(f"ours/{name}", text)
        self.git("init", "--quiet", at=self.ours)
        self.git("add", ".", at=self.ours)
        self.write("ours/cxx-bridge/left.txt", "what a tool has left\n")
        said = self.propose("--kind", "full")
        self.assertIn("pinbuddy, 4 commits", said)
        inside = ["Cargo.lock", "Cargo.toml", "LICENSE", "NOTICE", *(f"{it}/{file}" for it in ("cxx-bridge", "rust-core/engine") for file in ("Cargo.toml", "src/lib.rs"))]
        listed = self.git("ls-tree", "-r", "--name-only", "pinbuddy", "third_party").splitlines()
        self.assertEqual(listed, [f"third_party/pinbuddy/{it}" for it in inside])
        self.assertEqual(self.show("pinbuddy:docs/note.md"), "a note\non building\n", "what source builds apply, and not what is for upstream")
        body = (self.out / "PR_BODY.md").read_text()
        self.assertTrue("third_party/pinbuddy" in body and "pytorchbot" not in body, body)


class ThisCheckout(unittest.TestCase):
    def test_what_is_vendored_is_a_workspace_with_its_lock(self):
        # What a build of the workspace fetches; all else is done without a network.
        cargo = os.environ.get("CARGO", "cargo")
        subprocess.run([cargo, "fetch", "--quiet", "--locked", "--target", "x86_64-unknown-linux-gnu"], cwd=ROOT, check=True)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            upstream_pr.gather(ROOT, folder)
            folder /= "third_party/pinbuddy"
            for file in ["LICENSE", "NOTICE", "cxx-bridge/cpp/buddy_allocator.cpp", "rust-core/engine/src/lib.rs"]:
                self.assertTrue((folder / file).is_file(), file)
            self.assertFalse((folder / "xtask").exists())
            lock = (folder / "Cargo.lock").read_text()
            self.assertTrue('"cxx"' in lock and '"xshell"' not in lock)
            # `cargo metadata` would want the packages of every platform, and a build fetches this one's only.
            tree = [cargo, "tree", "--locked", "--offline", "--workspace"]
            done = subprocess.run(tree, cwd=folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("xtask", done.stdout)

    def test_the_checked_in_results_fill_every_row(self):
        table = upstream_text.benchmark(max((ROOT / "docs/results").glob("*-bench.json")))
        self.assertEqual(table.count("\n| "), 1 + len(upstream_text.FIGURES), table)

    def test_commands_in_the_document_are_accepted(self):
        commands = re.findall(r"^\$ cargo xtask upstream-pr (.*)$", (ROOT / "docs/upstream.md").read_text(), re.MULTILINE)
        self.assertTrue(commands)
        for command in commands:
            upstream_pr.options().parse_args(command.split())


if __name__ == "__main__":
    unittest.main()
