"""``pinbuddy verify-wheel``: whether a wheel is what it says it is, byte for byte, and if not, which of its files is not.

RECORD knows every file in a wheel, and nothing of the archive around them: names, times, rights, RECORD itself. The hash of the
whole file knows all of it; it comes from beside the wheel or from the command line. Who can change that as well can change
everything: a hash is worth what the place is worth that it was had from.

Reads with the standard library alone, and imports no torch. Nothing is extracted, and no file is read further than RECORD promises.
"""

import base64
import csv
import hashlib
import io
import json
import stat
import struct
import sys
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pinbuddy import _output

ABOUT = "verify every byte of a wheel, and name the file that differs"
"""The command, in a line."""

_CHUNK = 1 << 20
_LONGEST_LIST = 64 << 20
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, csv.Error)
"""What :mod:`zipfile` raises at an archive that is none any more: places before its begin are ``OSError``, texts that cannot be decoded
``ValueError``."""


class Refused(Exception):
    """What is wrong; what was found, expected and to be done, as far as there is more to say."""

    def __init__(self, what: str, **more: str):
        lines = [what, *(f"  {name.replace('_', ' '):<10}{text}" for name, text in more.items())]
        # Names in a wheel are whatever its maker likes; nothing but text reaches a terminal.
        shown = ["".join(it if it.isprintable() else ascii(it)[1:-1] for it in line) for line in lines]
        super().__init__("\n".join(shown))


class Row(NamedTuple):
    """What RECORD promises of a file."""

    digest: str
    size: int


class Wheel:
    """A wheel that is open, and what its RECORD says."""

    def __init__(self, path: Path):
        self.path = path
        file = path.open("rb")
        try:
            self.zip = zipfile.ZipFile(file)
            self.entries = [it for it in self.zip.infolist() if not it.is_dir()]
            names = [it.filename for it in self.entries]
            if why := _astray(self.zip.infolist()):
                raise zipfile.BadZipFile(why)
            (record,) = [it for it in self.entries if it.filename.count("/") == 1 and it.filename.endswith(".dist-info/RECORD")]
            if len(set(names)) != len(names) or record.file_size > _LONGEST_LIST:
                raise ValueError
            # Others are unpacked whole at once, however little is read.
            if any(it.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for it in self.entries):
                raise zipfile.BadZipFile("it is packed in a way that wheels are not")
            with self.zip.open(record) as opened:
                text = opened.read(_LONGEST_LIST + 1).decode()
            if len(text) > _LONGEST_LIST:
                raise zipfile.BadZipFile("its RECORD is too long")
            rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
            self.record = record.filename
            self.rows = {name: Row(digest, int(size)) for name, digest, size in rows if digest}
            if len(self.rows) + 1 != len(rows) or {name for name, *_ in rows} != set(names):
                raise ValueError
            if any(row.size < 0 for row in self.rows.values()):
                raise ValueError
        except _BROKEN as why:
            found = str(why) or "no RECORD, or one that does not list each file once with its hash"
            raise Refused(f"{path} is no wheel", found=found, to_do="fetch it again") from why

    def stem(self) -> str:
        return self.record.removesuffix("/RECORD")

    def chunks(self, name: str) -> Iterator[bytes]:
        """A file's contents, and at most a byte more than RECORD promises."""
        left = self.rows[name].size + 1 if name in self.rows else _LONGEST_LIST
        with self.zip.open(name) as file:
            while part := file.read(min(_CHUNK, left)):
                left -= len(part)
                yield part

    def is_good(self, name: str) -> bool:
        """Whether a file is as RECORD says."""
        digest, size = hashlib.sha256(), 0
        try:
            for part in self.chunks(name):
                digest.update(part)
                size += len(part)
        except _BROKEN:
            return False
        encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
        return self.rows[name] == Row(f"sha256={encoded}", size)

    def check(self) -> None:
        """Compares every file with RECORD, and a fork's library and program with its provenance."""
        progress, began = sys.stderr.isatty(), time.monotonic()
        for number, name in enumerate(self.rows):
            if progress and time.monotonic() > began + 1:
                print(f"\rverified {number} of {len(self.rows)} files", end="", file=sys.stderr, flush=True)
                began = time.monotonic()
            if not self.is_good(name):
                progress and print(file=sys.stderr)
                what = f"{name} in {self.path} is not the file that RECORD names"
                raise Refused(what, expected=" and ".join(map(str, self.rows[name])) + " bytes", to_do="fetch it again")
        self._check_provenance()

    def _check_provenance(self) -> None:
        name = f"{self.stem()}/pinbuddy.json"
        if name not in self.rows:
            return
        try:
            if self.rows[name].size > _LONGEST_LIST:
                raise zipfile.BadZipFile("it is too long")
            provenance = dict(json.loads(b"".join(self.chunks(name))))
            promised = {
                "torch/lib/libtorch_pinbuddy.so": provenance.get("library_sha256"),
                "pinbuddy/bin/pinbuddy-tools": provenance.get("program_sha256"),
            }
            for it in provenance.get("libraries", ()):  # a plug-in's
                promised[f"pinbuddy/lib/{it['torch_version']}/libtorch_pinbuddy.so"] = it["library_sha256"]
        except (*_BROKEN, TypeError, LookupError) as why:
            raise Refused(f"{name} in {self.path} is no provenance", found=str(why), to_do="fetch it again") from why
        for file, expected in promised.items():
            if file in self.rows and expected is not None and (found := _digest(self.chunks(file))) != expected:
                raise Refused(f"{file} is not the file that {name} names", found=found, expected=str(expected))


def verify(file: Path, sha256: str | None) -> str:
    """Says what vouches for the wheel.

    Raises:
        Refused: something is not as it was promised.
    """
    promised, source = sha256 and sha256.lower(), "--sha256"
    beside = file.with_name(file.name + ".sha256")
    if promised is None and beside.is_file():
        promised, source = (beside.read_text(errors="replace").split() or [""])[0].lower(), str(beside)
    with file.open("rb") as opened:
        found = _digest(_parts(opened))
    # Also where the whole is known to be another: RECORD says which part.
    Wheel(file).check()
    if promised is None:
        return (
            f"{file}: every file is as RECORD says. RECORD and the archive around the files are vouched for by nobody: --sha256 HASH, "
            f"or a file {beside.name}, knows every byte. This wheel's hash is {found}"
        )
    if promised != found:
        raise Refused(
            f"{file} is not the wheel that {source} speaks of",
            found=f"SHA-256 {found}; every file in it is as RECORD says, so what differs is RECORD itself or the archive around "
            "the files, or it is another build",
            expected=promised,
            to_do="fetch it again, with its hash from where you trust it",
        )
    return f"{file}: every byte is as {source} says, and every file as RECORD says"


def difference(file: Path, good: Path) -> str | None:
    """Where a wheel differs from one that is known to be good: contents that both RECORDs promise alike, so that a fork is compared
    with the official wheel as well; of the same wheel, everything else too. ``None`` where all that can be compared is equal."""
    reference = Wheel(good)
    try:
        wheel = Wheel(file)
    except Refused:  # headers may be what is wrong
        wheel = None
    for name in wheel.rows if wheel else ():
        if wheel.rows[name] == reference.rows.get(name) and not wheel.is_good(name):
            return f"{_first_byte(_unpacked(wheel, name), reference.chunks(name))} of the {wheel.rows[name].size} of {name}"
    if wheel and wheel.stem() != reference.stem():
        return None
    with file.open("rb") as one, good.open("rb") as other:
        if (at := _first_byte(_parts(one), _parts(other))) is None:
            return None
    place = int(at.removeprefix("byte ").split(",")[0])
    before = [it for it in reference.zip.infolist() if it.header_offset <= place]
    last = max(before, key=lambda it: it.header_offset, default=None)
    entry = "the list of entries at its end" if place >= reference.zip.start_dir or last is None else f"{last.filename} as it is packed"
    return f"{at} of the file, in {entry}"


def _astray(entries: Sequence[zipfile.ZipInfo]) -> str | None:
    """Why unpacking these would write outside the wheel's folder, or one file over another."""
    folders = {it.filename[:at] for it in entries for at, sign in enumerate(it.filename) if sign == "/"}
    for it in entries:
        name = it.filename.removesuffix("/")
        if {"", ".", ".."} & {*name.split("/")} or {*"\\\n\r"} & {*name} or name[1:2] == ":":
            return f"a path that leaves the wheel's folder or is not plain: {name}"
        if stat.S_ISLNK(it.external_attr >> 16):
            return f"a symbolic link: {name}"
        if it.filename in folders:
            return f"both a file and a folder: {name}"
    return None


def _digest(parts: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _parts(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.read(_CHUNK), b"")


def _unpacked(wheel: Wheel, name: str) -> Iterator[bytes]:
    """A file's contents as far as it unpacks."""
    try:
        yield from wheel.chunks(name)
    except _BROKEN:
        return


def _first_byte(one: Iterator[bytes], other: Iterator[bytes]) -> str | None:
    """The first byte at which two sequences of parts differ."""
    at, left, right = 0, b"", b""
    while True:
        left, right = left or next(one, b""), right or next(other, b"")
        common = min(len(left), len(right))
        if left[:common] != right[:common]:
            within = next(it for it in range(common) if left[it] != right[it])
            return f"byte {at + within}, {left[within]:#04x} in place of {right[within]:#04x},"
        if common == 0:
            return f"byte {at}, where one of them ends," if left or right else None
        at, left, right = at + common, left[common:], right[common:]


def _said(why: Refused | OSError) -> str:
    """An error in words; of a file that cannot be read, with what to do."""
    if isinstance(why, Refused):
        return str(why)
    to_do = "name the wheel's file (….whl), as pip download or a release gives it"
    return str(Refused(f"{why.filename or 'the file'} cannot be read", because=str(why.strerror), to_do=to_do))


def run(arguments: Sequence[str], typed: str = "pinbuddy") -> int:
    """The command; returns the exit status."""
    parser = _output.Parser(prog=f"{typed} verify-wheel", description=f"{ABOUT[0].upper()}{ABOUT[1:]}.")
    parser.add_argument("file", type=Path, metavar="FILE", help="the wheel: a fork, a plug-in, or any other")
    hash_help = "the SHA-256 that the whole file is to have [default: that in FILE.sha256, if it is there]"
    parser.add_argument("--sha256", metavar="HASH", help=hash_help)
    like_help = (
        "a wheel known to be good, the same or the official one that a fork was made of: names the first byte that differs"
    )
    parser.add_argument("--like", type=Path, metavar="WHEEL", help=like_help)
    options = parser.parse_args(arguments)
    try:
        said, wrong = verify(options.file, options.sha256), []
    except (Refused, OSError) as why:
        wrong = [_said(why)]
    try:
        if options.like and (place := difference(options.file, options.like)):
            differs = f"{options.file} differs from {options.like}"
            wrong.insert(0, str(Refused(differs, found=place, to_do="fetch it again, or build it again")))
    except (Refused, OSError) as why:
        wrong.append(_said(why))
    for text in wrong:
        print(f"error: {text}", file=sys.stderr)
    return 1 if wrong else _output.put(said)
