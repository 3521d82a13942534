"""`cargo xtask patch rebase`, `export` and `drift`: a series for other files, as commits, and beside another tree, by git alone.

Invariants: commits that came from a series export to the same bytes, whatever git is configured to do. `rebase` works in a repository
of its own, and changes none that is there: branch `from` has the files that the series was written for, `old` the series as commits
on top; `to` has the files that it is carried to, and `new`, which is checked out, the series on top of those. What git cannot decide
stays there as an ordinary conflict, for ordinary git. `drift` only reads, and reports.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from patch_git import FORMAT_PATCH, ROOT, GitFailed, find, of_tree, patches, run, sha256, start
from upstream_text import Refusal

# How far back from HEAD the release's own header is looked for.
FAR = 100
# Of the repository of a `rebase`: plain git continues there as this program would.
IDENTITY = {"user.name": "pinbuddy developers", "user.email": "pinbuddy@localhost"}
REPOSITORY = IDENTITY | {"commit.gpgSign": "false", "core.autocrlf": "false", "core.abbrev": "7", "merge.conflictStyle": "zdiff3"}
COMMITTER = {"GIT_COMMITTER_NAME": IDENTITY["user.name"], "GIT_COMMITTER_EMAIL": IDENTITY["user.email"], "GIT_EDITOR": "true"}
Files = dict[str, bytes | None]


def typed(path: object) -> str:
    """As it is typed in a shell."""
    return shlex.quote(str(path))


class Tree:
    """A PyTorch source tree, in git or not."""

    def __init__(self, root: Path, versions: dict):
        self.root = root.resolve()
        self.version, self.header = self.read("version.txt"), self.read(versions["header"])
        self.release = of_tree(versions, self.root, self.version, self.header)

    def read(self, path: str) -> bytes | None:
        file = self.root / path
        return file.read_bytes() if file.exists() else None

    def files(self, series: list[Path]) -> Files:
        """Those that the series touches."""
        # The checkout may be a folder of another repository, whose paths git would look for.
        above = {"GIT_CEILING_DIRECTORIES": str(ROOT.parent)}
        listed = [run(ROOT, "apply", "--numstat", "-z", "-p1", str(it), **above) for it in series]
        names = [line.split("\t")[2] for it in listed for line in it.decode().split("\0") if line]
        return {name: self.read(name) for name in names}


def write(files: Files, folder: Path) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            (folder / name).unlink(missing_ok=True)
        else:
            (folder / name).write_bytes(data)


def drift(tree: Tree, release: dict, series: list[Path]) -> str:
    """Whether each patch applies, and git's words for each hunk that moved or is gone. The hunks that fit are there for the next patch."""
    states = {release["header_sha256"]: "the one that the release ships", release["patched_sha256"]: "the one with the series in it"}
    header = states.get(sha256(tree.header), "not the one that the release ships") if tree.header is not None else "not there"
    version = (tree.version or b"").decode().split() or ["not there"]
    lines, fitting = [f"{tree.root} (version.txt: {version[0]}), against the series for torch {release['version']}", f"the header is {header}"], 0
    with tempfile.TemporaryDirectory() as work:
        write(tree.files(series), Path(work))
        for patch in series:
            how = ["-c", "core.whitespace=cr-at-eol", "apply", "-p1", "--whitespace=nowarn", "--reject", "--verbose"]
            done = start(work, *how, str(patch), GIT_CEILING_DIRECTORIES=str(Path(work).parent))
            told = done.stderr.decode(errors="replace").splitlines()
            fitting += done.returncode == 0
            lines += [f"{patch.name}: {'does not apply' if done.returncode else 'applies'}"]
            lines += [f"  {it}" for it in told if not it.startswith("Checking patch")]
    return "\n".join([*lines, f"{fitting} of {len(series)} patches apply", ""])


def since_release(tree: Tree, versions: dict, release: dict) -> list[str]:
    """The commits after the one with the release's own header, the oldest first."""
    commits, wanted = [], release["header_sha256"]
    for commit in run(tree.root, "rev-list", "--first-parent", f"--max-count={FAR}", "HEAD").decode().split():
        blob = start(tree.root, "cat-file", "blob", f"{commit}:{versions['header']}")
        if blob.returncode == 0 and sha256(blob.stdout) == wanted:
            found = "HEAD has the header that the release ships"
            break
        commits.insert(0, commit)
    else:
        shallow = run(tree.root, "rev-parse", "--is-shallow-repository") == b"true\n"
        found = f"no such header in the last {len(commits)} commits"
        if shallow:
            found = f"a shallow clone of {len(commits)} commits, and no such header in them: git fetch --deepen=20 has more"
        commits = []
    if commits:
        return commits
    expected = f"commits after one with the header of torch {release['version']}, SHA-256 {wanted}"
    todo = f"(cd patches/{release['series']} && cat $(cat series)) | git -C {typed(tree.root)} am  # makes them"
    raise Refusal(f"{tree.root} has no series in its commits", found, expected, todo)


def export(tree: Tree, versions: dict, release: dict, root: Path) -> str:
    """Writes the patches of these commits in the place of the release's series."""
    texts: dict[str, str] = {}
    for commit in since_release(tree, versions, release):
        patch = run(tree.root, "format-patch", *FORMAT_PATCH, "--no-numbered", "--stdout", "-1", "--zero-commit", commit).decode()
        # Hashes of files are seven digits long: git itself shows more of them in a large repository than in a small one.
        patch = re.sub(r"^index ([0-9a-f]{7})[0-9a-f]{33}\.\.([0-9a-f]{7})[0-9a-f]{33}", r"index \1..\2", patch, flags=re.MULTILINE)
        # `Open-_the-seam_` of `Open _the seam_`.
        subject = run(tree.root, "log", "-1", "--format=%f", commit).decode()
        name = "_".join(re.findall("[A-Za-z0-9]+", subject)).lower() + ".patch"
        if name in texts:
            todo = f"git -C {tree.root} rebase -i, and give one of them another subject"
            raise Refusal(f"two commits have the same words in their subjects: {name}", expected="a name for each; nothing was changed", todo=todo)
        texts[name] = patch
    out = root / "patches" / release["series"]
    with tempfile.TemporaryDirectory(prefix=".pinbuddy-", dir=out.parent) as scratch:
        new = Path(scratch) / "new"
        new.mkdir()
        for name, text in [*texts.items(), ("series", "".join(f"{it}\n" for it in texts))]:
            (new / name).write_bytes(text.encode())
        if out.exists():
            out.rename(Path(scratch) / "old")
        new.rename(out)
    version = release["version"]
    todo = f"git diff -- patches; cargo xtask patch verify --torch {version}; patched_sha256 in patches/versions.toml, if they have changed"
    return f"{len(texts)} patches for torch {version}, in {out}\nto do: {todo}\n"


def carry(series: list[Path], from_: tuple[str, Files], to: tuple[str, Files], folder: Path, next_: str) -> str:
    """Rebases the series in a new repository; returns git's comparison of it before and after, and the next command."""
    at = typed(folder)
    finish = f"git -C {at} add --all && git -C {at} rebase --continue\ngit -C {at} range-diff from..old to..new  # shows what has changed\n{next_}"
    if folder.exists():
        found = "what an earlier run, and maybe somebody since, has made"
        raise Refusal(f"{folder} is there already", found, "no such folder", f"{finish}\nor, to begin anew: rm -r {at}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pinbuddy-", dir=folder.parent) as scratch:
        work = Path(scratch) / "work"
        work.mkdir()
        try:
            rebase(series, from_, to, work)
        except GitFailed:
            if not (work / ".git/rebase-merge").exists():
                raise
        work.rename(folder)

    def git(*words):
        return run(folder, *words).decode()

    if (folder / ".git/rebase-merge").exists():
        found = "\n".join(f"a conflict in {folder}/{it}" for it in git("diff", "--name-only", "--diff-filter=U").splitlines())
        what = f'"{git("log", "-1", "--format=%s", "REBASE_HEAD").strip()}" of the series for {from_[0]} does not fit {to[0]} as it is'
        expected = "the lines between <<<<<<< and >>>>>>> as they should be; nothing outside of that folder was changed"
        raise Refusal(what, found, expected, f"edit them, then {finish}")
    if not git("rev-list", "to..new"):
        return f"{to[0]} has all of the series for {from_[0]} already\n"
    return f"{git('range-diff', '--no-color', 'from..old', 'to..new')}\nit is in {folder}, branch new; to do: {next_}\n"


def rebase(series: list[Path], from_: tuple[str, Files], to: tuple[str, Files], work: Path) -> None:
    def git(*words):
        run(work, *words, **COMMITTER)

    def commit(name, files):
        write(files, work)
        git("add", "--all")
        git("commit", "--quiet", "--allow-empty", "--message", f"PyTorch as {name} has it")

    git("init", "--quiet", "--template=", "--initial-branch=from")
    for name, value in REPOSITORY.items():
        git("config", name, value)
    commit(*from_)
    git("checkout", "--quiet", "-b", "old")
    git("am", "--quiet", "--keep-cr", "--no-3way", "--whitespace=nowarn", "--", *map(str, series))
    git("checkout", "--quiet", "-b", "to", "from")
    commit(*to)
    git("checkout", "--quiet", "-b", "new", "old")
    git("rebase", "--quiet", "--empty=drop", "--onto", "to", "from")


def shipped(versions: dict, release: dict, python: str) -> tuple[str, Files]:
    """A release in words, and its header, which xtask has in its cache or fetches."""
    if "/" in python:
        python = str(Path(python).absolute())
    ask = [os.environ.get("CARGO", "cargo"), "--quiet", "xtask", "patch", "header", "--torch", release["version"], "--python", python]
    done = subprocess.run(ask, stdout=subprocess.PIPE, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return f"torch {release['version']}", {versions["header"]: done.stdout}


def rebase_for(args: argparse.Namespace, versions: dict) -> str:
    """`patch rebase`, to a release or to a tree."""
    release = find(versions, args.from_)
    series, from_ = patches(ROOT, release["series"]), shipped(versions, release, args.python)
    if args.to:
        goal = find(versions, args.to)
        to, name = shipped(versions, goal, args.python), goal["version"]
    else:
        tree = Tree(args.source, versions)
        to, name = (str(tree.root), tree.files(series)), tree.root.name
    folder = Path("target/rebase") / f"{release['version']}-to-{name}"
    next_ = f"git -C {typed(folder)} diff to..new | git -C {typed(to[0])} apply"
    if args.to:
        next_ = f"cargo xtask patch export --source {folder} --torch {name}"
    os.chdir(ROOT)
    return carry(series, from_, to, folder, next_)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cargo xtask patch", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    tree, version = "a PyTorch source tree: a checkout, or an unpacked source archive", "the release whose series it is"
    for name, what, source, torch in [
        ("drift", "Say which hunks of a series still have their lines in another tree. Exits with 0 whatever moved, changed or is gone.",
         tree, f"{version} [default: the tree's own, or the newest supported one]"),
        ("export", "Write the commits that follow a release's own header back as its series.", "the checkout", f"{version} [default: the checkout's own]"),
    ]:  # fmt: skip
        command = commands.add_parser(name, description=what)
        command.add_argument("--source", metavar="DIR", type=Path, required=True, help=source)
        command.add_argument("--torch", metavar="VERSION", help=torch)
    more = (
        "Works in a git repository of its own, target/rebase/FROM-to-TO, with the files that the series changes, and prints git's range-diff of the "
        "series before and after. Changes neither patches/ nor DIR: the last line says what takes the result there. A conflict is left there to "
        "git, and the command exits with 1."
    )
    command = commands.add_parser("rebase", description="Carry a release's series to another release, or to a source tree.", epilog=more)
    command.add_argument("--from", dest="from_", metavar="VERSION", required=True, help=version)
    goal = command.add_mutually_exclusive_group(required=True)
    goal.add_argument("--to", metavar="VERSION", help="the release to carry it to, as its official wheel has the header")
    goal.add_argument("--source", metavar="DIR", type=Path, help=f"{tree}, to carry it to; it is only read")
    command.add_argument("--python", metavar="PY", default="python3", help="the Python whose wheels are fetched, where they have to be [default: python3]")
    return parser


def main(args: argparse.Namespace) -> str:
    versions = tomllib.loads((ROOT / "patches/versions.toml").read_text())
    if args.command == "rebase":
        return rebase_for(args, versions)
    tree = Tree(args.source, versions)
    release = find(versions, args.torch) if args.torch else tree.release
    if args.command == "drift":
        release = release or find(versions, None)
        return drift(tree, release, patches(ROOT, release["series"]))
    if release is None:
        what, todo = f"{tree.root} is no release that there is a series for", f"cargo xtask patch drift --source {typed(tree.root)} says what moved"
        raise Refusal(what, f"a header with SHA-256 {sha256(tree.header)}", "one that a release ships, or --torch VERSION", todo)
    return export(tree, versions, release, ROOT)


if __name__ == "__main__":
    try:
        print(main(options().parse_args()), end="")
    except (Refusal, GitFailed, OSError, UnicodeDecodeError) as why:
        sys.exit(f"error: {why}")
