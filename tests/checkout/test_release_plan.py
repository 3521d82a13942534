"""`ci/release-plan.sh`: the fork wheels of a release are those that patches/versions.toml names."""

import json
import os
import pathlib
import subprocess
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).parents[2]


class Plan(unittest.TestCase):
    def test_every_python_that_a_release_has_a_wheel_for_and_pinbuddy_fits(self):
        told = tomllib.loads((ROOT / "patches/versions.toml").read_text())["release"]
        expected = [{"torch": it["version"], "python": python} for it in told for python in it["pythons"] if python != "3.9"]
        with tempfile.NamedTemporaryFile("r") as output:
            done = subprocess.run([ROOT / "ci/release-plan.sh"], env=os.environ | {"GITHUB_OUTPUT": output.name}, capture_output=True, text=True)
            self.assertEqual(json.loads(done.stdout), expected, done.stderr)
            self.assertEqual(output.read(), f"include={done.stdout}")
        self.assertLessEqual(len(expected), 256, "jobs of a matrix")


if __name__ == "__main__":
    unittest.main()
