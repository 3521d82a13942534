#!/usr/bin/env python3
"""The documents as a site's source: pages below their own paths, and the order of docs/README.md as mdbook's SUMMARY.md.

usage: ci/site.py SOURCE          write the pages of this checkout below SOURCE (ci/site.sh does, then calls mdbook)
       ci/site.py --check SITE    fail if a link or picture of the built site leads nowhere
"""

import html.parser
import re
import shutil
import subprocess
import sys
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What only the site has: the report of a generated run, which ci/site.sh makes.
POOL = """
## A pool to play with

[A run whose sizes are drawn anew in each step](pool.html#lab): choose size and number of blocks, threshold, growth, or a plan. The curves
answer while a slider moves.
"""
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


def title(page: Path) -> str:
    heading = next(line for line in page.read_text().splitlines() if line.startswith("# "))
    return heading[2:].replace("`", "")


def linked(page: Path) -> list[Path]:
    """Files and folders of the checkout that a page links to, in order."""
    targets = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    return [path.relative_to(ROOT) for path in ((page.parent / link).resolve() for link in targets) if path.exists()]


def summary(pages: set[Path]) -> str:
    """The parts of docs/README.md with each page once, and below a folder's README its other pages; last, what is left."""
    lines, left = ["# Summary", "", "[pinbuddy](README.md)", ""], pages - {Path("README.md")}

    def listed(path: Path, indent: str) -> str:
        left.discard(path)
        return f"{indent}- [{title(ROOT / path)}]({path})"

    for part in (ROOT / "docs/README.md").read_text().split("\n## ")[1:]:
        entries = []
        for link in LINK.findall(part):
            path = (ROOT / "docs" / link).resolve().relative_to(ROOT)
            if path in left:
                entries.append(listed(path, ""))
                below = sorted(it for it in left if path.name == "README.md" and path.parent in it.parents)
                entries += [listed(it, "  ") for it in below]
        # The tutorial is the README, which stands first.
        lines += [f"# {part.splitlines()[0]}", "", *entries, ""] if entries else []
    return "\n".join([*lines, "# More", "", *(listed(path, "") for path in sorted(left)), ""])


def write(source: Path) -> None:
    """Pages, and whatever of the checkout they link to: pictures, examples, results."""
    tracked = {Path(it) for it in subprocess.check_output(["git", "-C", ROOT, "ls-files"], text=True).splitlines()}
    pages = {it for it in tracked if it.suffix == ".md" and it.parts[0] in ("docs", "ci", "examples", it.name)}
    files = set(pages)
    for page in pages:
        files |= tracked.intersection(linked(ROOT / page))
    for path in files:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, source / path)
    with open(source / "docs/concepts.md", "a") as concepts:
        concepts.write(POOL)
    (source / "SUMMARY.md").write_text(summary(pages))


class Targets(html.parser.HTMLParser):
    """What a page links to or shows, and its anchors."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.targets.append(value)
            elif value and name == "id":
                self.anchors.add(value)


def broken(site: Path) -> list[str]:
    """Links of all pages but the one for printing and the one for what is not found, which stand elsewhere."""
    pages = {it: Targets(it) for it in site.rglob("*.html") if it.name not in ("print.html", "404.html", "toc.html")}
    wrong = []
    for page, found in pages.items():
        for target in found.targets:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
            path = path / "index.html" if path.is_dir() else path
            if not path.exists() or (parts.fragment and path in pages and parts.fragment not in pages[path].anchors):
                wrong.append(f"{page.relative_to(site)}: {target}")
    return sorted(set(wrong))


def main() -> None:
    match sys.argv[1:]:
        case ["--check", site]:
            if wrong := broken(Path(site).resolve()):
                sys.exit("\n".join(["links of the site that lead nowhere:", *wrong]))
        case [source] if not source.startswith("-"):
            write(Path(source))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
