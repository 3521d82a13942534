"""`ci/index.py`, with pip and uv (of `ci/tools.sh`) as clients, and docs/deploy.md's way from an index to an image, with small wheels."""

import base64
import functools
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
import unittest
import unittest.mock
import zipfile

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "ci"))

import index

FIRST = "2.15.0+cu132.pinbuddy.0.1.0"
# Whoever tests may have another index, a proxy and a cache.
OWN = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_")) and not name.lower().endswith("_proxy")}
OWN |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_NO_CONFIG": "1", "UV_NO_CACHE": "1"}
DOCTOR = "print('pinbuddy serves pinned memory.')\n"


def make(folder, version=FIRST, name="torch", tags="py3-none-any", python=">=3.8", files=()):
    """A wheel of that name, with its hash beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    texts = {f"{name}/__init__.py": f"__version__ = {version!r}\n", **dict(files)}
    texts[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + (f"Requires-Python: {python}\n" if python else "")
    texts[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    texts[f"{info}/sboms/pinbuddy.cdx.json"] = "{}\n"
    hashed = {path: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode() for path, text in texts.items()}
    texts[f"{info}/RECORD"] = "".join(f"{path},sha256={it},{len(texts[path])}\n" for path, it in hashed.items()) + f"{info}/RECORD,,\n"
    wheel = folder / f"{name}-{version}-{tags}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in texts.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    write_hash(wheel)
    return wheel


def write_hash(wheel):
    wheel.with_name(f"{wheel.name}.sha256").write_text(f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n")


class Handler(http.server.SimpleHTTPRequestHandler):
    """As `python -m http.server` does; with `negotiates`, JSON where it is accepted."""

    def send_head(self):
        self.server.asked.append(self.path)
        if self.server.negotiates and self.path.endswith("/") and "application/vnd.pypi.simple.v1+json" in self.headers["Accept"]:
            self.path += "index.v1_json"
        return super().send_head()

    def guess_type(self, path):
        return "application/vnd.pypi.simple.v1+json" if str(path).endswith(".v1_json") else super().guess_type(path)

    def log_message(self, *_):
        pass


def setUpModule():
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    Index.venv = pathlib.Path(folder.name)
    subprocess.run([sys.executable, "-m", "venv", Index.venv], check=True)


class Index(unittest.TestCase):
    venv: pathlib.Path

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.wheels, self.index = self.folder / "wheels", self.folder / "index"

    def build(self):
        index.make(self.wheels, self.index)

    def refused(self, *words):
        with self.assertRaises(index.Refusal) as why:
            self.build()
        for word in [*words, "found  ", "expected  ", "to do  "]:
            self.assertIn(word, str(why.exception))
        self.assertFalse(self.index.exists(), "nothing is written")

    def serve(self, negotiates=False):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(self.folder)))
        server.asked, server.negotiates = [], negotiates
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), thread.join(), server.server_close()))
        return server, f"http://127.0.0.1:{server.server_port}/index/"

    def run_in_venv(self, command, **variables):
        environment = OWN | {"PATH": f"{self.venv}/bin:{OWN['PATH']}", "VIRTUAL_ENV": str(self.venv)} | variables
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    def install(self, client, url, *wanted, to="site"):
        """Has pip or uv install from that index alone."""
        client = [client, "pip"] if client == "uv" else [client]
        self.assertTrue(shutil.which(client[0], path=f"{self.venv}/bin:{OWN['PATH']}"), "for uv: ci/rules.sh, or source ci/tools.sh first")
        return self.run_in_venv([*client, "install", "--target", self.folder / to, "--index-url", url, *wanted])

    def installed(self, to="site", name="torch"):
        return re.search("'(.*)'", (self.folder / to / name / "__init__.py").read_text())[1]


class Clients(Index):
    def test_pip_and_uv_install_from_a_server_and_from_a_folder(self):
        make(self.wheels / "a")
        make(self.wheels / "b", "2.14.1+cu130.pinbuddy.0.1.0")
        make(self.wheels / "b", "2.16.0+cu132.pinbuddy.0.1.0", python=">=3.99")
        self.build()
        _, served = self.serve()
        for number, url in enumerate([served, self.index.as_uri()]):
            for client in ("pip", "uv"):
                for wanted, expected in [("torch", FIRST), ("torch==2.14.1", "2.14.1+cu130.pinbuddy.0.1.0")]:
                    to = f"{client}{number}{wanted}"
                    done = self.install(client, url, wanted, to=to)
                    self.assertEqual((done.returncode, done.stderr if done.returncode else ""), (0, ""))
                    self.assertEqual(self.installed(to), expected, url)

    def test_metadata_is_read_without_the_wheel(self):
        make(self.wheels)
        self.build()
        server, url = self.serve()
        done = self.run_in_venv(["uv", "pip", "install", "--dry-run", "--target", self.folder / "site", "--index-url", url, "torch"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([it for it in server.asked if "torch-" in it], ["/index/torch-2.15.0%2Bcu132.pinbuddy.0.1.0-py3-none-any.whl.metadata"])

    def test_pip_reads_the_page_as_json_from_a_server_that_negotiates(self):
        make(self.wheels, python=">=3.8,!=3.9.0")
        self.build()
        (self.index / "torch/index.html").unlink()
        done = self.install("pip", self.serve(negotiates=True)[1], "torch")
        self.assertEqual((done.returncode, self.installed()), (0, FIRST), done.stderr)
        page = json.loads((self.index / "torch/index.v1_json").read_text())
        self.assertEqual((page["files"][0]["requires-python"], page["versions"]), (">=3.8,!=3.9.0", [FIRST]))

    def test_a_changed_byte_is_refused(self):
        name = make(self.wheels).name
        self.build()
        good = (self.index / name).read_bytes()
        changed = bytearray(good)
        changed[10] ^= 1  # a time, which no check of the archive's covers
        (self.index / name).unlink()  # which is a link
        (self.index / name).write_bytes(changed)
        url = self.serve()[1]
        # uv compares with hashes of a lock, or of requirements, and not with the page's.
        (self.folder / "locked").write_text(f"torch=={FIRST} --hash=sha256:{hashlib.sha256(good).hexdigest()}\n")
        for client, *words in [("pip", "torch"), ("uv", "--require-hashes", "-r", self.folder / "locked")]:
            done = self.install(client, url, *words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(hashlib.sha256(changed).hexdigest(), done.stderr)
        self.assertFalse((self.folder / "site/torch").exists())

    def take_turns(self, *steps):
        """Has pip install a plug-in: each time its words, the one version in the index, and which one is installed then."""
        self.run_in_venv(["pip", "uninstall", "--yes", "pinbuddy"])
        for number, (words, version, expected) in enumerate(steps):
            make(self.folder / f"wheels{number}", version, "pinbuddy")
            index.make(self.folder / f"wheels{number}", self.folder / f"index{number}")
            url = (self.folder / f"index{number}").as_uri()
            done = self.run_in_venv(["pip", "install", "--index-url", url, *words.split()])
            self.assertEqual(done.returncode, 0, done.stderr)
            found = self.run_in_venv(["python", "-c", "import pinbuddy; print(pinbuddy.__version__)"])
            self.assertEqual(found.stdout.strip(), expected, f"{words}, from an index of {version}")

    def test_a_plug_in_of_a_newer_version_is_taken_and_a_rebuilt_one_if_its_version_is_named_in_full(self):
        first, rebuilt, newer = "0.1.0+torch2.15.0.hf1a2b3c4", "0.1.0+torch2.15.0.h01a2b3c4", "0.1.1+torch2.15.0.h01a2b3c4"
        self.take_turns(
            ("pinbuddy", first, first), ("pinbuddy", rebuilt, first), ("--upgrade pinbuddy", rebuilt, first),
            (f"pinbuddy=={rebuilt}", rebuilt, rebuilt), ("--upgrade pinbuddy", newer, newer),
        )  # fmt: skip

    def test_of_numbered_builds_the_one_with_the_highest_number_is_taken(self):
        plugins = ["0.1.0+torch2.15.0.hf1a2b3c4", "0.1.0+9.torch2.8.0.2.15.0.hf1a2b3c4", "0.1.0+10.torch2.15.0.2.16.0.h01a2b3c4", "0.1.0+2.torch2.15.0.hf1a2b3c4"]
        forks = [f"{FIRST}.df1a2b3c4", f"{FIRST}.9.df1a2b3c4", f"{FIRST}.10.d01a2b3c4", f"{FIRST}.2"]
        for name, versions in [("pinbuddy", plugins), ("torch", forks)]:
            for version in versions:
                make(self.wheels, version, name)
        self.build()
        for client in ("pip", "uv"):
            done = self.install(client, self.index.as_uri(), "pinbuddy", "torch", to=client)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((self.installed(client, "pinbuddy"), self.installed(client)), (plugins[2], forks[2]))
        # One that is installed is replaced by a newer one, and by no older one.
        self.take_turns(*(("--upgrade pinbuddy", plugins[number], plugins[expected]) for number, expected in [(1, 1), (2, 2), (3, 2)]))


class Folder(Index):
    def test_the_same_wheels_give_the_same_bytes_and_take_no_room(self):
        wheel = make(self.wheels / "x/y")
        make(self.wheels, "0.1.0+torch2.15.0.h01a2b3c4", "pinbuddy")
        self.build()
        shutil.copytree(self.wheels, self.folder / "copies/later")
        index.make(self.folder / "copies", self.folder / "again")
        names = sorted(str(it.relative_to(self.index)) for it in self.index.rglob("*"))
        self.assertEqual(len(names), 2 * 3 + 2 * 3 + 3, names)
        self.assertEqual(names, sorted(str(it.relative_to(self.folder / "again")) for it in (self.folder / "again").rglob("*")))
        for name in names:
            if (self.index / name).is_file():
                self.assertEqual((self.index / name).read_bytes(), (self.folder / "again" / name).read_bytes(), name)
        self.assertTrue((self.index / wheel.name).samefile(wheel))
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=self.index, check=True)

    def test_another_file_system_gets_copies(self):
        wheel = make(self.wheels)
        with unittest.mock.patch("os.link", side_effect=OSError(18, "Invalid cross-device link")):
            self.build()
        self.assertFalse((self.index / wheel.name).samefile(wheel))
        self.assertEqual((self.index / wheel.name).read_bytes(), wheel.read_bytes())

    def command(self, index, **options):
        return subprocess.run([sys.executable, str(ROOT / "ci/index.py"), str(self.wheels), str(index)], capture_output=True, text=True, **options)

    def test_all_may_read_what_is_served(self):
        wheel = make(self.wheels)
        wheel.chmod(0o600)
        self.assertEqual(self.command(self.index, umask=0o077).returncode, 0)
        modes = {str(it): it.stat().st_mode & 0o777 for it in [self.index, *self.index.rglob("*")]}
        self.assertEqual(set(modes.values()), {0o644, 0o755}, modes)
        self.assertEqual(wheel.stat().st_mode & 0o777, 0o600)

    def test_a_folder_that_cannot_be_written_is_named_and_one_that_is_not_empty_stays_as_it_is(self):
        make(self.wheels)
        done = self.command("/proc/x")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: /proc/x cannot be read or written\n  found     No such file", done.stderr)
        self.index.mkdir()
        (self.index / "mine").touch()
        done = self.command(self.index)
        self.assertEqual((done.returncode, [it.name for it in self.index.iterdir()]), (1, ["mine"]))
        self.assertIn(f"error: {self.index} is there\n  found  ", done.stderr)

    def test_names_of_files_and_fields_are_text_in_a_page(self):
        make(self.wheels, tags="""py3-none-a"><script>'&""", python='">3<i>')
        make(self.wheels, "1.0", "A.b__<i>#", python="")
        self.build()
        pages = {it.parent.name: it.read_text() for it in self.index.rglob("index.html")}
        self.assertEqual({*pages}, {"index", "torch", "a-b-<i>#"})
        for text in pages.values():
            self.assertNotRegex(text, "<script|<i>")
        self.assertIn('href="../torch-2.15.0%2Bcu132.pinbuddy.0.1.0-py3-none-a%22%3E%3Cscript%3E%27%26.whl#sha256=', pages["torch"])
        self.assertIn('data-requires-python="&quot;&gt;3&lt;i&gt;"', pages["torch"])
        self.assertIn('<a href="a-b-%3Ci%3E%23/">a-b-&lt;i&gt;#</a>', pages["index"])
        self.assertNotIn("requires-python", pages["a-b-<i>#"])

    def test_wheels_that_are_not_what_was_built(self):
        self.wheels.mkdir()
        self.refused("has no wheels", "cargo xtask build-wheel")
        wheel = make(self.wheels)
        wheel.write_bytes(wheel.read_bytes() + b"\0")
        self.refused(f"{wheel} is not what {wheel.name}.sha256 says", hashlib.sha256(wheel.read_bytes()).hexdigest())
        wheel.with_name(f"{wheel.name}.sha256").unlink()
        self.refused(f"{wheel} has no hash", "sha256sum")
        wheel.write_bytes(b"no wheel")
        write_hash(wheel)
        self.refused(f"{wheel} cannot be read", "build it again")

    def test_a_wheel_of_another_name(self):
        other = make(self.wheels).rename(self.wheels / "torch-2.16.0-py3-none-any.whl")
        write_hash(other)
        self.refused(f"{other} is no wheel of that name", FIRST)

    def test_two_builds_of_one_version(self):
        for said, name, *versions in [
            (f"torch {FIRST}", "torch", FIRST, f"{FIRST}.d01a2b3c4"),
            ("pinbuddy 0.1.0,", "pinbuddy", "0.1.0+torch2.15.0.hf1a2b3c4", "0.1.0+torch2.8.0.2.15.0.h01a2b3c4"),
            ("pinbuddy 0.1.0+7,", "pinbuddy", "0.1.0+7.torch2.15.0.hf1a2b3c4", "0.1.0+7.torch2.8.0.2.15.0.h01a2b3c4"),
        ]:
            made = [make(self.wheels / str(number), version, name) for number, version in enumerate(versions)]
            self.refused(f"two builds of {said}", *map(str, made))
            shutil.rmtree(self.wheels)


class Image(Index):
    """The Dockerfile of docs/deploy.md, without docker."""

    def setUp(self):
        super().setUp()
        text = (ROOT / "docs/deploy.md").read_text()
        [block] = re.findall("```dockerfile\n(.*?)```", text, re.DOTALL)
        self.lines = [line.partition(" ")[::2] for line in block.splitlines()]

    def test_it_names_the_newest_release_and_a_python_that_it_has_a_wheel_for(self):
        self.assertEqual([it for it, _ in self.lines], ["FROM", "ARG", "RUN", "RUN", "CMD"])
        newest = tomllib.loads((ROOT / "patches/versions.toml").read_text())["release"][-1]
        ours = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        self.assertIn(re.match(r"python:([\d.]+)", self.lines[0][1])[1], newest["pythons"])
        [version] = re.findall(r"torch==(\S+)", self.lines[2][1])
        self.assertRegex(version, rf"^{re.escape(newest['version'])}\+cu\d+\.pinbuddy\.{re.escape(ours)}$")

    def test_its_lines_install_the_fork_and_the_smoke_test_sees_one_that_does_not_start(self):
        [version] = re.findall(r"torch==(\S+)", self.lines[2][1])
        runs = [text for word, text in self.lines if word == "RUN"]
        command = json.loads(self.lines[-1][1])
        for number, broken in enumerate([False, True]):
            package = {"pinbuddy/__init__.py": "raise ImportError\n" if broken else "", "pinbuddy/__main__.py": DOCTOR}
            wheels, to = self.folder / f"wheels{number}", self.folder / f"index{number}"
            make(wheels, version, files=package)
            # As if PyPI had a newer one.
            make(self.folder / f"pypi-wheels{number}", "2.99.0")
            index.make(wheels, to)
            index.make(self.folder / f"pypi-wheels{number}", self.folder / f"pypi{number}")
            variables = {"INDEX": to.as_uri(), "PIP_INDEX_URL": (self.folder / f"pypi{number}").as_uri(), "PIP_FORCE_REINSTALL": "1"}
            done = [self.run_in_venv(["sh", "-c", it], **variables) for it in runs]
            self.assertEqual([it.returncode for it in done], [0, int(broken)], done)
            if not broken:
                self.assertEqual(done[1].stdout.strip(), version)
                self.assertIn("serves", self.run_in_venv(command).stdout)


if __name__ == "__main__":
    unittest.main()
