"""`cargo xtask upstream-pr`: a proposal to PyTorch, as a branch, patches and a description.

Invariants: the checkout gets a branch, and nothing else changes in it: commits are made with an index and in a folder of their
own, and reach the checkout last. A series is only proposed for a header that it fits exactly.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from patch_git import FORMAT_PATCH, GitFailed, find, hookless, of_tree, patches, run, sha256
from upstream_text import Refusal, benchmark, description, tested

ROOT = Path(__file__).parent.parent
VENDORED = "third_party/pinbuddy"
BRANCHES = {"seam": "host-allocator-subclass", "full": "pinbuddy"}
# Ours at the end of a patch's message, and for nobody else.
TRAILERS = ("Reason: ", "Forwarded: ")


class Checkout:
    """A checkout, a commit of it, and the commits that are made on top. `own` is an empty folder."""

    def __init__(self, folder: Path, base: str, own: Path):
        def no_checkout(found):
            todo = "pass the root of a clone; cargo xtask patch apply works on trees without git"
            return Refusal(f"{folder} is not a git checkout", found, "the root of a clone of pytorch", todo)

        self.root, self.own = folder.resolve(), {}
        if not folder.is_dir():
            raise no_checkout("no folder")
        try:
            top = self.git("rev-parse", "--show-toplevel")
        except GitFailed as why:
            raise no_checkout(str(why)) from None
        if Path(top) != self.root:
            raise no_checkout(f"a folder within {top}")
        theirs = self.git("rev-parse", "--path-format=absolute", "--git-path", "objects")
        (own / "objects").mkdir()
        self.own = {"GIT_INDEX_FILE": str(own / "index"), "GIT_OBJECT_DIRECTORY": str(own / "objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES": theirs}
        self.base = self.tip = self.resolve(base)
        self.git("read-tree", self.base)

    def raw(self, *words, users=False, data=b"", **variables) -> bytes:
        return run(self.root, *words, users=users, data=data, **self.own | variables)

    def git(self, *words, **more) -> str:
        return self.raw(*words, **more).decode().rstrip()

    def find(self, name: str) -> str | None:
        """The full name of a commit or a file, if there is one of that name."""
        try:
            return self.git("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        except GitFailed:
            return None

    def resolve(self, name: str) -> str:
        if commit := self.find(f"{name}^{{commit}}"):
            return commit
        shallow = self.git("rev-parse", "--is-shallow-repository") == "true"
        found = "a shallow clone, without it" if shallow else "no branch, tag or commit of that name"
        todo = f"git -C {self.root} fetch origin {name}, then --base FETCH_HEAD"
        raise Refusal(f"there is no {name} in {self.root}", found, "--base with a branch, a tag or a commit of that checkout", todo)

    def require_free(self, branch: str):
        """Refuses a name that no branch can have, or that one has."""
        try:
            self.git("check-ref-format", "--branch", branch)
            what = f"{self.root} has a branch {branch} already" if self.find(f"refs/heads/{branch}") else None
        except GitFailed:
            what = f'"{branch}" is no name for a branch'
        if what:
            todo = "pass another one with --branch, or remove that branch if nobody needs it"
            raise Refusal(what, expected="a name that is free; nothing was changed", todo=todo)

    def read(self, path: str, commit: str | None = None) -> bytes | None:
        """A file of the base, or of another commit."""
        blob = self.find(f"{commit or self.base}:{path}")
        return blob and self.raw("cat-file", "blob", blob)

    def hash(self, path: str) -> str:
        """SHA-256 of a file of the last commit."""
        return sha256(self.read(path, self.tip))

    def apply(self, patch: Path, message: str, todo: str):
        """Commits a patch, with no fuzz and no three-way merge."""
        try:
            self.git("apply", "--cached", "-p1", "--verbose", "--whitespace=nowarn", str(patch))
        except GitFailed as why:
            found = "\n".join(it for it in str(why).splitlines() if not it.startswith("Checking patch"))
            expected = "every hunk's lines as the patch has them: no fuzz, no three-way merge; nothing was changed"
            raise Refusal(f"{patch} does not apply", found, expected, todo) from None
        self.commit(message)

    def add(self, folder: Path, message: str):
        """Commits what is in a folder beside what the tree has."""
        variables = {"GIT_DIR": self.git("rev-parse", "--absolute-git-dir"), "GIT_WORK_TREE": str(folder)}
        self.git("-C", str(folder), "-c", "core.fileMode=false", "add", "--force", "--ignore-removal", ".", **variables)
        self.commit(message)

    def commit(self, message: str):
        """By the user's identity: the one thing that is taken from the user's configuration."""
        # A partial clone does not have the files that nobody reads.
        tree = self.git("write-tree", "--missing-ok")
        try:
            made = ["-c", "user.useConfigOnly=true", "-c", "i18n.commitEncoding=UTF-8", "commit-tree", "-p", self.tip, tree]
            self.tip = self.git(*made, users=True, data=message.encode())
        except GitFailed as why:
            todo = f"git -C {self.root} config user.name NAME, and user.email ADDRESS"
            raise Refusal("git does not know whose commits these will be", str(why), "user.name and user.email in git's configuration", todo) from None

    def make_branch(self, name: str):
        """Makes a branch of the commits, unless there is one of that name."""
        packed = self.raw("pack-objects", "--quiet", "--revs", "--stdout", data=f"{self.tip}\n^{self.base}\n".encode())
        theirs = dict.fromkeys(self.own)
        self.raw("unpack-objects", "-q", data=packed, **theirs)
        self.git("update-ref", f"refs/heads/{name}", self.tip, "0" * len(self.tip), **theirs)


def message(patch: str) -> tuple[str, str]:
    """A patch's subject, which may go on in lines that begin with a blank, and what is below it, without trailers of ours."""
    head, _, rest = patch.partition("\n\n")
    subject = re.search(r"^Subject: \[PATCH\] (.*(?:\n .*)*)", head, re.MULTILINE)[1]
    body = re.split(r"^(?:diff --git |---)", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return " ".join(subject.split()), "\n".join(it for it in body.splitlines() if not it.startswith(TRAILERS)).strip()


def release_of(checkout: Checkout, versions: dict, kind: str) -> dict:
    """The release whose series is proposed: the one whose header the tree has, or else of its version, or else the newest."""
    newest = find(versions, None)
    release = of_tree(versions, checkout.root, checkout.read("version.txt"), checkout.read(versions["header"])) or newest
    if kind == "full" or release["series"] == newest["series"]:
        return release
    version = release["version"]
    raise Refusal(
        f"PyTorch takes pull requests for its main branch, not for {version}",
        f"{checkout.root}, with the header of torch {version}",
        f"main, or a tree that the series for torch {newest['version']} fits",
        "pass --base origin/main, or --kind full",
    )


def commit_series(checkout: Checkout, root: Path, versions: dict, release: dict, more: list[Path]) -> tuple[list, bool]:
    """Commits the release's series and what follows it. Returns the messages, and whether the header is another than the release's."""
    header, version = versions["header"], release["version"]
    before = checkout.hash(header)
    if before == release["patched_sha256"]:
        found = f"a header that has the series for torch {version} already"
        todo = "pass --base with a commit from before the series"
        raise Refusal(f"there is nothing to propose for {checkout.root}", found, "a header that the series fits; nothing was changed", todo)
    drifted, messages = before != release["header_sha256"], []
    carry = f"cargo xtask patch rebase --from {version} --source DIR carries the series over"
    of_release = patches(root, release["series"])
    for number, patch in enumerate(of_release + more, 1):
        subject, body = message(patch.read_text())
        todo = carry if number <= len(of_release) else "refresh that patch, or pass another --base"
        checkout.apply(patch, f"{subject}\n\n{body}\n", todo)
        messages.append((subject, body))
        if number == len(of_release) and not drifted and checkout.hash(header) != release["patched_sha256"]:
            found, expected = f"SHA-256 {checkout.hash(header)}", f"SHA-256 {release['patched_sha256']}"
            raise Refusal(f"after the series for {version}, {header} is not what patches/versions.toml pins", found, expected)
    return messages, drifted


def workspace(text: str, crates: list[str]) -> str:
    """The workspace's manifest with these crates only. Settings of the profile `dev` for a package are for programs that stay here."""
    text = re.sub(r"^default-members = \[.*?\]\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^members = \[.*?\]", "members = " + json.dumps(crates), text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r'^[\w-]+ = \{ path = "([^"]+)".*\n', lambda it: it[0] if it[1] in crates else "", text, flags=re.MULTILINE)
    return re.sub(r"^\[profile\.dev\.package\b.*\n(?:[^\[\n].*\n|\n)*", "", text, flags=re.MULTILINE)


def gather(root: Path, folder: Path) -> tuple[str, str]:
    """Our library's crates, with their licence, as one folder of PyTorch's tree: a workspace without build tool. Subject and body."""
    def cargo(*words, at):
        done = subprocess.run([os.environ.get("CARGO", "cargo"), *words], cwd=at, capture_output=True, text=True)
        if done.returncode != 0:
            expected = f"{VENDORED} with what Cargo.toml and Cargo.lock name"
            raise Refusal("our sources are no cargo workspace of their own", done.stderr, expected, "cargo fetch --locked, in the checkout of pinbuddy")
        return done.stdout

    root, into = root.resolve(), folder / VENDORED
    linked = "tree --locked --package pinbuddy-bridge --features torch --edges normal,no-proc-macro --target x86_64-unknown-linux-gnu --prefix none"
    listed = cargo(*linked.split(), at=root)
    crates = sorted({it for it in re.findall(rf"\({re.escape(str(root))}/([^)]*)\)", listed)})
    names = subprocess.run(["git", "ls-files", "-z", "--", *crates, "Cargo.lock", "LICENSE", "NOTICE"], cwd=root, env=hookless(), check=True, capture_output=True)
    for name in filter(None, names.stdout.decode().split("\0")):
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, into / name)
    manifest = root / "Cargo.toml"
    (into / "Cargo.toml").write_text(workspace(manifest.read_text(), crates))
    # Removes from Cargo.lock what only other crates need, so that `--locked` works. Needs no network.
    cargo("update", "--workspace", "--offline", "--quiet", at=into)
    version = tomllib.loads(manifest.read_text())["workspace"]["package"]["version"]
    return f"Add pinbuddy {version}", (
        "The engine that decides which pinned memory serves which request, in Rust, and the host\n"
        "allocator that asks it, in C++, with their licence, as a cargo workspace of its own. A build\n"
        f"with USE_PINBUDDY=1 and PINBUDDY_ROOT={VENDORED}, as an absolute path, has it."
    )


def place(out: Path) -> Path:
    """Where patches go; links may lead there. Refuses what is in the way."""
    real = Path(os.path.realpath(out))
    above = next(it for it in real.parents if os.path.exists(it))
    if os.path.lexists(real) and not (real.is_dir() and os.access(real, os.R_OK) and not os.listdir(real)):
        what = f"{out} is in the way"
    elif not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        what = f"{out} cannot be made: {above} is no folder that you can write to"
    else:
        return real
    raise Refusal(what, expected="an empty folder, or none; nothing was changed", todo="pass another one with --out, or remove it")


def propose(args: argparse.Namespace, own: Path, root: Path = ROOT) -> str:
    """Does it, or with `--dry-run` only tries. `own` is an empty folder, `root` our own checkout. Returns a description for people."""
    checkout = Checkout(args.source, args.base, own)
    branch = args.branch or BRANCHES[args.kind]
    checkout.require_free(branch)
    out = place(args.out)
    versions = tomllib.loads((root / "patches/versions.toml").read_text())
    release = release_of(checkout, versions, args.kind)
    results = args.bench or max((root / "docs/results").glob("*-bench.json"))
    table = benchmark(results)
    follows = [versions["pull_request"]] if args.kind == "seam" else release.get("source_series", [])
    more = [patch for folder in follows for patch in patches(root, folder)]
    messages, drifted = commit_series(checkout, root, versions, release, more)
    if args.kind == "full":
        (own / "ours").mkdir()
        messages.append(gather(root, own / "ours"))
        checkout.add(own / "ours", "{}\n\n{}\n".format(*messages[-1]))
    said = [
        f"{'the extension points' if args.kind == 'seam' else 'the whole fork'}, by the series for torch {release['version']}"
        + (", for a header that is another than that release's" if drifted else ""),
        f"  checkout  {checkout.root}",
        f"  base      {args.base} ({checkout.base[:12]})",
        f"  branch    {branch}, {len(messages)} commits:",
        *(f"    {subject}" for subject, _ in messages),
        f"  patches   {args.out}/*.patch, {args.out}/PR_BODY.md",
    ]
    changed = checkout.git("diff", "--name-only", checkout.base, checkout.tip).splitlines()
    status = ["status", "--porcelain", "--untracked-files=no", "--", *changed]
    mine = checkout.git(*status, GIT_OPTIONAL_LOCKS="0", **dict.fromkeys(checkout.own))
    if mine:
        said += ["  not in it, since no commit has them, and left as they are:", *(f"    {it}" for it in mine.splitlines())]
    if args.dry_run:
        return "\n".join([*said, f"  table     from {results}", "nothing was changed (--dry-run)", ""])
    kept = tested(root / "target/upstream/seam.json", patches(root, release["series"]) + more)
    not_run = {"seam": "Not run on these patches yet: `cargo xtask test --only seam`.\n", "full": "Not run in this tree.\n"}
    body = description(args.kind, messages, kept or not_run[args.kind], table, checkout.read(".github/PULL_REQUEST_TEMPLATE.md"))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pinbuddy-", dir=out.parent) as scratch:
            whole = Path(scratch) / "out"
            checkout.git("format-patch", *FORMAT_PATCH, "--quiet", "--numbered", "--output-directory", str(whole), f"{checkout.base}..{checkout.tip}")
            (whole / "PR_BODY.md").write_text(body)
            whole.rename(out)
    except OSError as why:
        raise Refusal(f"{args.out} cannot be written", str(why), "a folder that can be made", "pass another one with --out") from None
    try:
        # Last: if anything failed before, the checkout is as it was.
        checkout.make_branch(branch)
    except GitFailed:
        shutil.rmtree(out)
        raise
    if args.kind == "seam":
        said += [] if kept else ["not tested: cargo xtask test --only seam, then run this again"]
        said += ["before it is opened: PyTorch takes pull requests for issues that are labelled actionable; see #181094"]
    return "\n".join([*said, ""])


def options() -> argparse.ArgumentParser:
    more = (
        "Makes a branch in the checkout, and touches nothing else there: HEAD, the index, files and changes that are not committed "
        "stay as they are. Does everything or nothing. docs/upstream.md says what is in it and why."
    )
    parser = argparse.ArgumentParser(prog="cargo xtask upstream-pr", description=__doc__.split("\n")[0], epilog=more)
    add = parser.add_argument
    add("--source", metavar="DIR", type=Path, required=True, help="the PyTorch checkout: the root of a git clone")
    kinds = "only the extension points, with a test and documentation, for PyTorch's maintainers (seam), or the whole fork, for a mainline of one's own (full)"
    add("--kind", choices=list(BRANCHES), default="seam", help=f"what to propose: {kinds} [default: seam]")
    add("--base", metavar="BRANCH", default="HEAD", help="the branch or commit to start from [default: HEAD]")
    add("--branch", metavar="NAME", help="the branch to make [default: host-allocator-subclass, or pinbuddy for --kind full]")
    add("--out", metavar="DIR", type=Path, default=Path("upstream-pr"), help="where the patches and PR_BODY.md go: a folder that is not there yet, or empty [default: upstream-pr]")
    add("--bench", metavar="FILE", type=Path, help="results of `bench --json` for the table [default: the newest in docs/results]")
    add("--dry-run", action="store_true", help="say what would be done, and change nothing")
    return parser


if __name__ == "__main__":
    try:
        with tempfile.TemporaryDirectory() as folder:
            print(propose(options().parse_args(), Path(folder)), end="")
    except (Refusal, GitFailed) as why:
        sys.exit(f"error: {why}")
