"""`ci/fresh.sh`: a home of cargo's and a cache that start empty, with this machine's configuration."""

import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]


class Fresh(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.theirs, self.fresh = self.home / ".cargo", self.home / "fresh"

    def write(self, path, text=""):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def shell(self, script):
        """Runs what follows `source ci/fresh.sh`, for a user whose home is that folder."""
        command = ["bash", "-c", f"set -euo pipefail; source ci/fresh.sh; {script}"]
        environment = {"HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    def test_cargos_home_has_the_configuration_and_nothing_that_was_fetched(self):
        self.write(self.theirs / "config.toml", "[net]\nretry = 3\n")
        self.write(self.theirs / "registry/cache/cxx.crate", "fetched")
        # What the last run has fetched goes, too.
        self.write(self.fresh / "registry/cache/old.crate", "fetched")
        done = self.shell(f"fresh_cargo_home {self.fresh}; echo $CARGO_HOME; echo $PATH; find {self.fresh} -type f")
        self.assertEqual(done.stdout, f"{self.fresh}\n/usr/bin:/bin:{self.theirs}/bin\n{self.fresh}/config.toml\n")
        self.assertEqual((self.fresh / "config.toml").read_text(), "[net]\nretry = 3\n")
        self.assertTrue((self.theirs / "registry/cache/cxx.crate").exists(), "the user's own stays")

    def test_a_home_without_configuration_and_the_cache_are_empty(self):
        cache = self.home / "cache"
        self.write(cache / "torch.whl")
        done = self.shell(f"fresh_cargo_home {self.fresh}; fresh_cache {cache}; find $CARGO_HOME $XDG_CACHE_HOME")
        self.assertEqual((done.returncode, done.stdout), (0, f"{self.fresh}\n{cache}\n"))

    def test_the_home_in_use_is_not_emptied(self):
        self.write(self.theirs / "config.toml")
        self.assertNotEqual(self.shell(f"fresh_cargo_home {self.theirs}").returncode, 0)
        self.assertTrue((self.theirs / "config.toml").exists())

    def test_what_a_change_must_pass_and_the_nightly_run_start_so(self):
        for name in [".ci/run", "ci/nightly.sh"]:
            text = (ROOT / name).read_text()
            self.assertGreater(text.index("\ncargo xtask"), text.index("fresh_cargo_home"), name)
        self.assertIn("fresh_cache", text)


if __name__ == "__main__":
    unittest.main()
