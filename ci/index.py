#!/usr/bin/env python3
"""An index of wheels as a folder of static files. pip and uv take it as it is, from any web server or as file://.

usage: ci/index.py WHEELS INDEX     (WHEELS: a folder with wheels anywhere below, each with its .sha256 beside it, as builds write it)

INDEX, which must be new or empty, gets the wheels (links where the file system allows it), METADATA and bill of materials of each beside it,
SHA256SUMS, and a page for each project (PEP 503), with hashes and metadata (PEP 658, 714). `index.v1_json` beside a page is the same for servers
that negotiate (PEP 691, 700). Nothing is written before all wheels were checked. The same wheels give the same bytes.
"""

import hashlib
import html
import json
import os
import re
import shutil
import stat
import sys
import urllib.parse
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

# The digest that ends a version of ours, and the releases that the plug-in's names before it. Neither has an order that a user means: pip
# would take any of two builds. What is left has the build's number, which has one.
BUILD = re.compile(r"([+.]torch[\w.]+)?\.[hd][0-9a-f]{8}$")
BILL = ".dist-info/sboms/pinbuddy.cdx.json"


class Refusal(Exception):
    def __init__(self, what: object, found: object, expected: object, todo: object):
        super().__init__(f"{what}\n  found     {found}\n  expected  {expected}\n  to do     {todo}")


@dataclass
class Wheel:
    path: Path
    sha256: str
    project: str
    version: str
    requires_python: str
    metadata: bytes
    bill: bytes

    @property
    def name(self) -> str:
        return self.path.name


def normal(name: str) -> str:
    """As in PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def check_hash(path: Path) -> str:
    """The hash of a wheel, which is what the build wrote beside it."""
    beside = path.with_name(f"{path.name}.sha256")
    again = f"build the wheel again, or, if it is good: (cd '{path.parent}' && sha256sum '{path.name}' >'{beside.name}')"
    if not beside.is_file():
        raise Refusal(f"{path} has no hash", "nothing", beside, again)
    written, found = beside.read_text().rstrip("\n"), f"{sha256(path)}  {path.name}"
    if written != found:
        raise Refusal(f"{path} is not what {beside.name} says", found, written, again)
    return found.split()[0]


def read(path: Path) -> Wheel:
    """A wheel whose hash and name are right."""
    digest, parts = check_hash(path), path.name.removesuffix(".whl").split("-")
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            entries = [it for it in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", it)]
            metadata = b"".join(map(archive.read, entries))
            bill = b"".join(archive.read(it) for it in names if it.endswith(BILL))
        fields = HeaderParser().parsestr(metadata.decode())
    except (zipfile.BadZipFile, UnicodeDecodeError) as why:
        raise Refusal(f"{path} cannot be read", why, "a wheel", "build it again") from None
    project, version = normal(fields["Name"] or ""), fields["Version"]
    if len(entries) != 1 or len(parts) not in (5, 6) or (project, version) != (normal(parts[0]), parts[1]):
        found = f"{len(entries)} METADATA, of {project} {version}"
        expected = "NAME-VERSION-…-PYTHON-ABI-PLATFORM.whl with one METADATA, of NAME and VERSION"
        raise Refusal(f"{path} is no wheel of that name", found, expected, "build it again")
    return Wheel(path, digest, project, version, fields["Requires-Python"] or "", metadata, bill)


def read_all(folder: Path) -> list[Wheel]:
    """All wheels below a folder, each once."""
    wheels = [read(it) for it in sorted(folder.rglob("*.whl"), key=lambda it: (it.name, it))]
    if not wheels:
        raise Refusal(f"{folder} has no wheels", "no *.whl below it", "wheels", "cargo xtask build-wheel")
    kept: dict[tuple[str, ...], Wheel] = {}
    for wheel in wheels:
        version = BUILD.sub("", wheel.version)
        other = kept.setdefault((wheel.project, version, *wheel.name.split("-")[2:]), wheel)
        if other is not wheel:
            what = f"two builds of {wheel.project} {version}, and pip would take any"
            raise Refusal(what, f"{other.path}\n            {wheel.path}", "one", "remove one, or make an index of each")
    return wheels


def page(title: str, lines: list[str]) -> str:
    head = f'<!DOCTYPE html>\n<html><head><meta name="pypi:repository-version" content="1.1"><title>{html.escape(title)}</title></head><body>\n'
    return head + "".join(f"{line}<br>\n" for line in lines) + "</body></html>\n"


def link(target: str, text: str, **data: str) -> str:
    """A link with attributes data-…, those that are empty left out."""
    attributes = "".join(f' data-{name.replace("_", "-")}="{html.escape(value)}"' for name, value in data.items() if value)
    return f'<a href="{html.escape(target)}"{attributes}>{html.escape(text)}</a>'


def listed(wheel: Wheel) -> tuple[str, dict]:
    """A wheel in its project's page, and in the same as JSON."""
    url, digest = f"../{urllib.parse.quote(wheel.name)}", hashlib.sha256(wheel.metadata).hexdigest()
    line = link(f"{url}#sha256={wheel.sha256}", wheel.name, requires_python=wheel.requires_python, core_metadata=f"sha256={digest}")
    entry = {"filename": wheel.name, "url": url, "hashes": {"sha256": wheel.sha256}, "size": wheel.path.stat().st_size, "core-metadata": {"sha256": digest}}
    return line, entry | ({"requires-python": wheel.requires_python} if wheel.requires_python else {})


def write_pages(folder: Path, title: str, lines: list[str], told: dict) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "index.html").write_text(page(title, lines))
    (folder / "index.v1_json").write_text(json.dumps({"meta": {"api-version": "1.1"}} | told, indent=1) + "\n")


def write(wheels: list[Wheel], index: Path) -> None:
    index.mkdir(parents=True, exist_ok=True)
    for wheel in wheels:
        source = wheel.path.resolve()
        try:
            if not source.stat().st_mode & stat.S_IROTH:
                raise PermissionError  # a copy can be read by all
            os.link(source, index / wheel.name)
        except OSError:  # also another file system, or one without links
            shutil.copyfile(source, index / wheel.name)
        (index / f"{wheel.name}.metadata").write_bytes(wheel.metadata)
        if wheel.bill:
            (index / f"{wheel.name.removesuffix('.whl')}.cdx.json").write_bytes(wheel.bill)
    (index / "SHA256SUMS").write_text("".join(f"{it.sha256}  {it.name}\n" for it in wheels))
    projects = sorted({it.project for it in wheels})
    write_pages(index, "wheels", [link(f"{urllib.parse.quote(it)}/", it) for it in projects], {"projects": [{"name": it} for it in projects]})
    for project in projects:
        own = [it for it in wheels if it.project == project]
        lines, files = zip(*map(listed, own), strict=True)
        versions = sorted({it.version for it in own})
        write_pages(index / project, project, list(lines), {"name": project, "versions": versions, "files": files})


def make(wheels: Path, index: Path) -> str:
    """Makes the index, and says what it has."""
    if index.exists() and (not index.is_dir() or any(index.iterdir())):
        raise Refusal(f"{index} is there", "a file, or a folder that is not empty", "a folder that is new or empty", f"rm -r '{index}', or name another one")
    found = read_all(wheels)
    write(found, index)
    return f"{index}: {len(found)} wheels, {sum(it.path.stat().st_size for it in found) / 1e9:.1f} GB"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    os.umask(0o022)  # whoever serves the files may be another user
    try:
        print(make(*map(Path, sys.argv[1:])))
    except Refusal as why:
        sys.exit(f"error: {why}")
    except OSError as why:
        expected = "WHEELS that can be read, and INDEX that can be written, with room on its disk"
        sys.exit(f"error: {Refusal(f'{why.filename} cannot be read or written', why.strerror, expected, 'name another folder')}")
