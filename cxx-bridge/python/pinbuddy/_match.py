"""Which library fits a PyTorch: that of a fork wheel, or one of the plug-in's.

Reads files and loads nothing. A library of the plug-in fits one PyTorch only: the exact version,
including CUDA's, whose allocator header has the hash that the library was compiled against. Any other
is refused with a reason, since its objects may have another layout.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = "libtorch_pinbuddy.so"
_PACKAGE = Path(__file__).parent
_MANIFEST = _PACKAGE / "plugin.json"
_HEADER = "ATen/core/CachingHostAllocator.h"


@dataclass(frozen=True)
class Match:
    """The library for one PyTorch, if any."""

    form: str
    """``fork``, ``plug-in``, or ``none`` if no library fits or the package is not where it belongs."""
    library: Path | None
    """The library's path; ``None`` with the form ``none``."""
    why: str
    """Why none fits, as a sentence without a period; empty if one does."""
    expected: bool = False
    """Whether no library is expected: a PyTorch without CUDA pins no memory."""
    damaged: bool = False
    """Whether the plug-in has lost the library that fits."""
    header: Path | None = None
    """The header that was compared."""


def of_import(torch: Any) -> Match:
    """The match for the imported PyTorch."""
    folder = Path(torch.__file__).parent
    return _match(folder, str(torch.__version__), torch.version.cuda, imported=True)


def of_folder(folder: Path) -> Match:
    """The match for a PyTorch on disk: the package's folder, or an unpacked libtorch."""
    package, libtorch = folder / "version.py", folder / "build-version"
    if package.exists():
        text = package.read_text(encoding="utf-8", errors="replace")
        # Later releases annotate their names.
        version = re.search(r"^__version__\b.*=\s*'([^']+)'", text, re.MULTILINE)
        cuda = re.search(r"^cuda\b.*=\s*'([^']+)'", text, re.MULTILINE)
        if version:
            return _match(folder, version[1], cuda and cuda[1])
    elif libtorch.exists():
        version_text = libtorch.read_text(encoding="utf-8", errors="replace").strip()
        return _match(folder, version_text, None if "+cpu" in version_text else "")
    return Match("none", None, f"{folder} has neither a version.py nor a build-version of PyTorch's")


def manifest() -> dict[str, Any] | None:
    """What the plug-in has libraries for; ``None`` where this package came in a fork wheel."""
    try:
        # Also from a zip file on the path.
        text = __spec__.loader.get_data(str(_MANIFEST))
    except FileNotFoundError:
        return None
    listed: dict[str, Any] = json.loads(text)
    return listed


def sha256(path: Path) -> str:
    """Of a file, as hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _match(folder: Path, version: str, cuda: str | None, imported: bool = False) -> Match:
    own = folder / "lib" / NAME
    if own.exists():
        return Match("fork", own, "")
    listed = manifest()
    if listed is None:
        return Match("none", None, f"torch {version} is not a pinbuddy fork")
    if cuda is None:
        return Match("none", None, f"torch {version} has no CUDA", expected=True)
    fitting = [it for it in listed["libraries"] if it["torch"] == version]
    if not fitting:
        known = ", ".join(it["torch"] for it in listed["libraries"])
        return Match("none", None, f"torch {version} is not one that the plug-in fits ({known})")
    places = _include_folders(folder, imported)
    header = next((it / _HEADER for it in places if (it / _HEADER).exists()), None)
    if header is None:
        return Match(
            "none", None, f"torch {version} in {folder} came without its header {_HEADER}"
        )
    if sha256(header) != fitting[0]["header_sha256"]:
        why = f"{header} is not the one of the official torch {version}"
        return Match("none", None, why, header=header)
    library = _PACKAGE / fitting[0]["file"]
    if not library.exists():
        found = "is missing" if _PACKAGE.is_dir() else "lies in a zip file, which is to be installed and taken off the path"
        return Match("none", None, f"the plug-in's {library} {found}", damaged=True, header=header)
    return Match("plug-in", library, "", header=header)


def _include_folders(folder: Path, imported: bool) -> Iterator[Path]:
    """Where headers may be. The list of what is loaded is read only where the first place has none:
    every import of torch comes by here."""
    yield folder / "include"
    # Where the libraries are, the headers are beside.
    if imported and (library := _loaded("libtorch_cpu.so")):
        yield library.parent.parent / "include"
    # In a checkout they may only be in the sources.
    yield folder.parent / "aten/src"


def _loaded(name: str) -> Path | None:
    """Where a library of this process was loaded from."""
    if sys.platform != "linux":
        return None
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            path = line.rstrip("\n").partition("/")[2]
            if path.endswith(f"/{name}"):
                return Path(f"/{path}")
    return None
