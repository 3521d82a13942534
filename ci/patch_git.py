"""How git is called for series of patches, and which release a series or a tree is of: for `patch.py` and `upstream_pr.py`.

Invariant: neither the user's nor the system's configuration of git is read, and a repository's own changes no patch.
"""

import hashlib
import os
import re
import subprocess
from pathlib import Path

from upstream_text import Refusal

ROOT = Path(__file__).parent.parent
# For what `patches/` has: no hash of the commit, no renames, no version of git.
FORMAT_PATCH = """
--full-index --no-stat -p --unified=3 --src-prefix=a/ --dst-prefix=b/ --no-renames --no-signature --no-attach --no-cover-letter
--no-add-header --no-signoff --no-from --no-base --no-notes --no-thread --encoding=UTF-8 --subject-prefix=PATCH
""".split()
# As xtask has them.
SETTINGS = dict(line.split("=", 1) for line in (ROOT / "xtask/patchkit/src/settings.txt").read_text().splitlines())


class GitFailed(Exception):
    """What git says."""


def hookless() -> dict:
    """The environment, without a hook's variables: they name another repository."""
    theirs = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_CONFIG_PARAMETERS"}
    return {name: it for name, it in os.environ.items() if name not in theirs}


def start(root: Path, *words, users=False, data=b"", **variables) -> subprocess.CompletedProcess:
    """git in `root`, without configuration but the repository's own; with `users`, also theirs."""
    env = hookless() | {"LC_ALL": "C"}
    if not users:
        env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1", "GIT_CONFIG_COUNT": str(len(SETTINGS))}
        for number, (name, value) in enumerate(SETTINGS.items()):
            env |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    env = {name: it for name, it in (env | variables).items() if it is not None}
    return subprocess.run(["git", "-C", root, *words], input=data, capture_output=True, env=env)


def run(root: Path, *words, **more) -> bytes:
    """What it prints; what it complains of, if it fails, is the error."""
    done = start(root, *words, **more)
    if done.returncode != 0:
        raise GitFailed(done.stderr.decode(errors="replace").strip())
    return done.stdout


def sha256(data: bytes | None) -> str:
    return hashlib.sha256(data or b"").hexdigest()


def patches(root: Path, folder: str) -> list[Path]:
    """The patches of a series, in order."""
    names = (root / "patches" / folder / "series").read_text().splitlines()
    return [root / "patches" / folder / it.strip() for it in names if it.strip() and not it.strip().startswith("#")]


def releases(versions: dict) -> list[dict]:
    """Those that have wheels, the newest last."""
    return sorted(versions["release"], key=lambda it: [int(part) for part in it["version"].split(".")])


def find(versions: dict, asked: str | None) -> dict:
    """The release of that version, the last one of `2.15`, or the newest."""
    known = releases(versions)
    meant = known if asked in (None, "latest") else [it for it in known if asked in (it["version"], it["version"].rpartition(".")[0])]
    if not meant:
        if asked in (it["version"] for it in versions.get("source_release", [])):
            raise Refusal(f"torch {asked} has no wheel that can be forked", asked, "a release with a wheel; or its sources: --source")
        listed = ", ".join(it["version"] for it in known)
        raise Refusal(f"torch {asked} is not a supported release", asked, f"one of {listed}, or latest")
    return meant[-1]


def of_tree(versions: dict, root: Path, version: bytes | None, header: bytes | None) -> dict | None:
    """The release of a tree with this version.txt and this header: by the header, with the series or without it, or else by its version."""
    if version is None and header is None:
        found = f"neither version.txt nor {versions['header']}"
        raise Refusal(f"{root} is not a PyTorch source tree", found, "the root of a clone of pytorch, or of an unpacked source archive")
    every = versions.get("source_release", []) + releases(versions)
    named = re.match(r"[\d.]*", (version or b"").decode())[0]
    ours = [it for it in every if sha256(header) in (it["header_sha256"], it["patched_sha256"])]
    of_version = lambda all: [it for it in all if it["version"] == named]  # noqa: E731
    return next(iter(of_version(ours) or ours[-1:] or of_version(every)), None)
