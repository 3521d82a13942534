"""PyTorch's tests from Debian's source package, in the user's cache; prints the tree's folder.

apt fetches the package with a configuration of its own, so the machine does not change, and verifies the archive's signature. The
archive is the one that this machine's apt has. Once cached, no network is needed.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

WANTED = tomllib.loads((Path(__file__).parent / "source.toml").read_text())
NAME = f"{WANTED['package']} {WANTED['version']}"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
TO_DO = "pass --source a checkout of pytorch"


class Missing(Exception):
    """The sources cannot be had: what was found, what was expected, and what to do."""

    def __init__(self, found: str, expected: str, to_do: str = TO_DO):
        super().__init__(f"Debian's source package {NAME} cannot be had\n  found     {found}\n  expected  {expected}\n  to do     {to_do}")


def ensure() -> Path:
    """The tree with the unpacked files, fetched if missing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pinbuddy/upstream"
    # Trees of earlier revisions had fewer files.
    folder = cache / f"{WANTED['package']}-{WANTED['version']}.2"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        tarball = download(Path(work))
        found = hashlib.sha256(tarball.read_bytes()).hexdigest()
        if found != WANTED["sha256"]:
            raise Missing(f"a tarball with SHA-256 {found}", WANTED["sha256"], f"run it again; if that does not help, {TO_DO}")
        tree = Path(work, "tree")
        tree.mkdir()
        options = ["--strip-components=1", "--wildcards", "--no-wildcards-match-slash"]
        called(["tar", "-xJf", str(tarball), "-C", str(tree), *options, *WANTED["files"]], "tar and xz, and room on the disk")
        try:
            tree.rename(folder)
        except OSError:  # another process was first
            if not folder.is_dir():
                raise
    return folder


def called(command: list[str], expected: str, **more) -> str:
    """Its output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"}, **more)
    except FileNotFoundError as error:
        raise Missing(str(error), expected) from error
    if done.returncode != 0:
        raise Missing(done.stderr.strip(), expected, f"connect to the network and run it again, or {TO_DO}")
    return done.stdout


def archive() -> str:
    """The address of the Debian archive in this machine's package sources, not of security updates or of another vendor; also where
    no package list was ever fetched."""
    wanted = "a Debian archive among this machine's package sources"
    addresses = called(["apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI)", "Identifier: Packages"], wanted).split()
    found = [it for it in addresses if it.rstrip("/").endswith("/debian")]
    if not found:
        raise Missing(", ".join(addresses) or "none", wanted)
    if not Path(KEYRING).is_file():
        raise Missing(f"no {KEYRING}", "its key", f"apt-get install debian-archive-keyring, or {TO_DO}")
    return found[0]


def download(work: Path) -> Path:
    """The upstream tarball, by apt with its folders in `work`."""
    for folder in ("state/lists/partial", "cache/archives/partial", "source"):
        (work / folder).mkdir(parents=True)
    (work / "sources.list").write_text(f"deb-src [signed-by={KEYRING}] {archive()} {WANTED['release']} main\n")
    settings = {
        "Dir::State": work / "state",
        "Dir::Cache": work / "cache",
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        # The folders belong to this user.
        "APT::Sandbox::User": "root",
        "APT::Update::Error-Mode": "any",
        "APT::Get::AllowUnauthenticated": "false",
    }
    apt = ["apt-get", "-q", *(part for name, value in settings.items() for part in ("-o", f"{name}={value}"))]
    print(f"downloading {NAME} (27 MB)", file=sys.stderr)
    for arguments in (["update"], ["source", "--download-only", "--only-source", WANTED["package"]]):
        called([*apt, *arguments], "a Debian archive that answers, and its key", cwd=work / "source")
    tarball = work / "source" / f"{WANTED['package']}_{WANTED['version']}.orig.tar.xz"
    if not tarball.is_file():
        raise Missing(f"another version in {WANTED['release']}: {[it.name for it in tarball.parent.iterdir()]}", NAME)
    return tarball


if __name__ == "__main__":
    try:
        print(ensure())
    except Missing as missing:
        sys.exit(f"error: {missing}")
