"""Rules on the files of a checkout that no ready linter has: shape of sources, workflows, settings in documents.

Each rule takes all text files, by their paths from the root, and yields complaints: "path:line: what is wrong".
"""

import email
import email.policy
import posixpath
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

Files = dict[str, str]

ROOT = Path(__file__).parents[2]
LONGEST = 400
# Generated files, and parts of upstream's text.
NOT_OURS = (".snap", ".svg", ".json", ".patch", ".lock")
# In parts, or this file would name them: hosts of package registries, which are the client's to know; folders of one machine.
HOSTS = [a + b for a, b in [("pypi.", "org"), ("python", "hosted.org"), ("crates.", "io"), ("registry.", "npmjs"), ("deb.", "debian.org"), ("download.pytorch.", "org")]]
FOLDERS = re.compile("/(wo" + "rk|ro" + r"ot)/[\w.]")
# Crates that need no unsafe code.
SAFE = [f"rust-core/{it}" for it in ("engine", "events", "replay", "snapshot", "plan", "slots", "live")] + ["cxx-bridge/machine", "cxx-bridge/config", "cxx-bridge/store"]

SETTINGS = "cxx-bridge/config/src/variables.rs"
SIMULATOR, SIMULATOR_PAGE = "tests/cuda-sim/src/", "docs/simulator.md"
CI_PAGE = "ci/README.md"
# Patches: how many lines of upstream's files a series may change, how many lines a hunk may have around a change, the first lines.
SEAM, CONTEXT = 60, 3
OPENING = [f"From {'0' * 40} Mon Sep 17 00:00:00 2001", "From: pinbuddy developers <pinbuddy@localhost>", "Date: ", "Subject: [PATCH] "]
SETTING = re.compile(r"\b(?:BUDDY|PINBUDDY_SIM)_\w+")


def checkout() -> Files:
    """The text files that git tracks or would add."""
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    files = {}
    for name in filter(None, names):
        try:
            files[name] = (ROOT / name).read_text()
        except (UnicodeDecodeError, FileNotFoundError):  # no text, or removed without git
            continue
    return files


def is_script(text: str) -> bool:
    return re.match(r"#!.*bash\n", text) is not None


def is_workflow(path: str) -> bool:
    return path.startswith(".github/workflows/")


def lines(text: str) -> Iterator[tuple[int, str]]:
    return enumerate(text.splitlines(), 1)


def own(text: str) -> str:
    """A Rust source without its tests."""
    return text.split("#[cfg(test)]")[0]


def has_head(path: str, text: str) -> bool:
    """Whether a source begins with a comment that says what it is for; a C++ file may leave that to its header."""
    first = text.split("\n", 1)[1] if text.startswith("#!") else text
    kind = Path(path).suffix
    if kind == ".rs":
        return first.startswith("//!")
    if kind in (".cpp", ".c", ".h"):
        return first.startswith(("//", "/*", f'#include "{Path(path).stem}.h"'))
    return first.startswith(("# ", '"""') if kind == ".py" else "# ")


def shape(files: Files) -> Iterator[str]:
    for path, text in files.items():
        if path.endswith(NOT_OURS):
            continue
        if Path(path).suffix in (".rs", ".cpp", ".h", ".c", ".py", ".sh", ".yml") or is_script(text):
            if text.strip() and not has_head(path, text):
                yield f"{path}:1: no comment at its head that says what it is for"
            length = text.count("\n")
            if length > LONGEST:
                yield f"{path}: {length} lines; the most are {LONGEST}"
        for number, line in lines(text):
            if line != line.rstrip() or "\t" in line:
                yield f"{path}:{number}: a tab, or blanks at the end"
            if FOLDERS.search(line):
                yield f"{path}:{number}: a folder of one machine"
            yield from (f"{path}:{number}: {host}: a registry is the client's to know" for host in HOSTS if host in line)
        if text and not text.endswith("\n"):
            yield f"{path}: the last line does not end"


def integration_tests(files: Files) -> Iterator[str]:
    """Where a crate's integration tests are one program, a file that it leaves out would never run."""
    for path in files:
        folder, name = posixpath.split(path)
        program = files.get(f"{folder}/all.rs")
        if posixpath.basename(folder) == "tests" and program and name.endswith(".rs") and name != "all.rs":
            if f"\nmod {name.removesuffix('.rs')};\n" not in program:
                yield f"{path}:1: {folder}/all.rs has no `mod {name.removesuffix('.rs')};`, so it never runs"


def safe_crates(files: Files) -> Iterator[str]:
    for crate in SAFE:
        if "#![forbid(unsafe_code)]" not in files.get(f"{crate}/src/lib.rs", ""):
            yield f"{crate}/src/lib.rs: does not forbid unsafe code"


def workflows(files: Files) -> Iterator[str]:
    """What actionlint and zizmor do not ask for: every command can be run by hand, every job has a time limit."""
    for path, text in files.items():
        if not is_workflow(path):
            continue
        for number, line in lines(text):
            command = re.match(r"[\s-]*run:\s*(.*)", line)
            if command and not command[1].startswith(("ci/", "cargo xtask ")):
                yield f"{path}:{number}: a command that is neither ci/… nor cargo xtask …"
        if text.count("runs-on:") != text.count("timeout-minutes:"):
            yield f"{path}: a job without timeout-minutes"


def documents(files: Files) -> Iterator[str]:
    """Documents name settings and scripts that exist; pages list the simulator's settings, workflows and scripts."""
    known = set()
    for path, text in files.items():
        if path == SETTINGS or path.startswith(SIMULATOR):
            quoted = {name for name in SETTING.findall(own(text)) if f'"{name}"' in own(text)}
            known |= quoted
            if path != SETTINGS:
                missing = sorted(name for name in quoted if name not in files.get(SIMULATOR_PAGE, ""))
                yield from (f"{SIMULATOR_PAGE}: no row explains {name}, which {path} reads" for name in missing)
    for path, text in files.items():
        script = is_script(text)
        listed = path if script else path.rsplit("/", 1)[-1]
        if (is_workflow(path) or (script and path.startswith("ci/"))) and f"`{listed}" not in files.get(CI_PAGE, ""):
            yield f"{CI_PAGE}: nothing explains {path}"
        if path == "CHANGELOG.md" or not (path.endswith(".md") or script or is_workflow(path)):
            continue
        for number, line in lines(text):
            yield from (f"{path}:{number}: {name} is no setting" for name in SETTING.findall(line) if name not in known)
            for name in re.findall(r"(?<![\w./-])ci/[\w/.-]+\.sh", line):
                if name not in files:
                    yield f"{path}:{number}: there is no {name}"


def anchor(heading: str) -> str:
    """What a link to a heading ends with."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def links(files: Files, exists: Callable[[str], bool] = lambda path: (ROOT / path).exists()) -> Iterator[str]:
    """Links of documents lead to files of the checkout, and to headings in them."""
    for path, text in files.items():
        if not path.endswith(".md"):
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            to, _, part = target.partition("#")
            to = posixpath.normpath(posixpath.join(posixpath.dirname(path), to)) if to else path
            if "://" in target:
                continue
            if not exists(to):
                yield f"{path}: there is no {to} to link to"
            elif part and part not in map(anchor, re.findall("^#+ (.*)", files.get(to, ""), re.MULTILINE)):
                yield f"{path}: {to} has no heading {part} to link to"


def diffs(patch: str) -> Iterator[tuple[str, bool, list[str]]]:
    """The path of each file, whether the patch adds it, and how the lines of each hunk begin, which has as many as its head says."""
    found, before, old, new = [], "", 0, 0
    for line in patch.split("\n"):
        if old > 0 or new > 0:
            # git takes an empty line for one that lost its blank. A line with a backslash says that the line before does not end.
            kind = line[:1] or " "
            found[-1][2][-1] += kind.replace("\\", "")
            old, new = old - (kind in " -"), new - (kind in " +")
        elif line.startswith("+++ ") and before.startswith("--- "):
            found.append((line[4:].removeprefix("b/").partition("\t")[0], before.partition("\t")[0] == "--- /dev/null", []))
        elif found and (lengths := re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line)):
            old, new = (int(it or 1) for it in lengths.groups())
            found[-1][2].append("")
        before = line
    yield from found


def told_by_git(patch: str) -> str:
    """What `git apply` would do: for each file the numbers of added and removed lines, and its path. Or why it would not."""
    command = ["git", "apply", "-p1", "--numstat", "-z", "--whitespace=nowarn"]
    done = subprocess.run(command, cwd=ROOT, input=patch, capture_output=True, text=True)
    return done.stdout or done.stderr


def in_wheel(path: str) -> bool:
    return re.fullmatch(r"(aten/src|c10|torch/csrc)/.*\.h", path) is not None and ".." not in path


def form(path: str, text: str) -> Iterator[str]:
    """A patch is as `patch export` writes it, says why, and has for git the files and lines that `diffs` finds."""
    for expected, line in zip(OPENING, text.splitlines()):
        if not line.startswith(expected):
            yield f"{path}: expected {expected!r}, found {line!r}"
    subject = email.message_from_string(text, policy=email.policy.default)["Subject"] or ""
    wanted = "_".join(re.findall("[A-Za-z0-9]+", subject.removeprefix("[PATCH] "))).lower() + ".patch"
    if posixpath.basename(path) != wanted:
        yield f"{path}: its subject would name it {wanted}"
    message = re.split("^(?:diff --git |---)", text.partition("\n\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    if not re.sub("^(?:Reason|Forwarded): .*$", "", message, flags=re.MULTILINE).strip():
        yield f"{path}: its message does not say why"
    for trailer in ("Reason: ", "Forwarded: "):
        if not re.search(f"^{trailer}.", message, re.MULTILINE):
            yield f'{path}: expected "{trailer}…" in its message'
    lines = [(file, "".join(hunks)) for file, _, hunks in diffs(text)]
    expected, found = "".join(f"{it.count('+')}\t{it.count('-')}\t{file}\0" for file, it in lines), told_by_git(text)
    if found != expected:
        yield f"{path}: git finds {found!r} in it, and its `+++ b/…` and `@@ … @@` say {expected!r}"


def patches(files: Files) -> Iterator[str]:
    """Series name patches of the right form, which change few lines, and those of a release only headers that a wheel has."""
    told = tomllib.loads(files.get("patches/versions.toml", ""))
    of_headers = {f"patches/{it['series']}" for it in told.get("release", []) + told.get("source_release", [])}
    changed = Counter()
    for path, text in files.items():
        folder, name = posixpath.split(path)
        if not path.startswith("patches/"):
            continue
        if name == "series":
            for entry, times in Counter(text.split()).items():
                if times > 1 or not entry.endswith(".patch") or f"{folder}/{entry}" not in files:
                    yield f"{path}: {entry} is named twice, is no .patch, or is not there"
        if not name.endswith(".patch"):
            continue
        if name not in files.get(f"{folder}/series", "").split("\n"):
            yield f"{path}: series does not name it"
            continue
        yield from form(path, text)
        for file, added, hunks in diffs(text):
            if folder in of_headers and not in_wheel(file):
                yield f"{path}: {file} is no header that a wheel has"
            for number, hunk in enumerate(hunks, 1):
                if len(hunk) - min(len(hunk.lstrip(" ")), len(hunk.rstrip(" "))) > CONTEXT:
                    yield f"{path}: hunk {number} of {file} has more than {CONTEXT} lines around its change"
                # A line that replaces another counts once. Files that a patch adds are ours.
                changed[folder] += 0 if added else max(hunk.count("-"), hunk.count("+"))
    for folder, lines in changed.items():
        if lines > SEAM:
            yield f"{folder}: changes {lines} lines of upstream's files, and {SEAM} are the most; put more of it into files of ours"


if __name__ == "__main__":
    # For shellcheck.
    print("\n".join(path for path, text in checkout().items() if is_script(text)))
