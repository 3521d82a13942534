"""`pinbuddy verify-wheel`: every byte of a wheel, and the name of the file that differs."""

import base64
import hashlib
import json
import stat
import zipfile
from pathlib import Path

import pytest
from pinbuddy import _verify

FILES = {"torch/a.py": b"a = 1\n", "torch/b.py": b"b = 2\n"}


def wheel(path, files: dict = FILES, stem="torch-1", rows: str | None = None, mode=0, method=zipfile.ZIP_STORED) -> Path:
    """A wheel of these files of that mode, packed in that way, with the RECORD that fits or with these rows."""

    def row(name: str, content: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(content)}\n"

    record = f"{stem}.dist-info/RECORD"
    if rows is None:
        rows = "".join(row(*it) for it in files.items()) + f"{record},,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**files, record: rows.encode()}.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            archive.writestr(entry, content, zipfile.ZIP_STORED if name == record else method)
    return path


def said(capsys, *arguments: object) -> tuple[int, str]:
    status = _verify.run([str(it) for it in arguments])
    shown = capsys.readouterr()
    return status, shown.err if status else shown.out


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_every_changed_byte_is_refused(tmp_path, capsys):
    good = wheel(tmp_path / "good.whl")
    whole, expected = good.read_bytes(), digest(good)
    file = tmp_path / "torch-1-py3-none-any.whl"
    file.write_bytes(whole)
    assert said(capsys, file, "--sha256", expected.upper(), "--like", good)[0] == 0
    with zipfile.ZipFile(good) as archive:
        entries = [it for it in archive.infolist() if not it.filename.endswith("RECORD")]
    places = {}
    for it in entries:
        begin = it.header_offset + 30 + len(it.filename)
        places |= {at: it.filename for at in range(begin, begin + it.compress_size)}
    assert len(places) >= len(FILES) * 6
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        status, text = said(capsys, file, "--sha256", expected)
        assert status == 1 and text.startswith("error: "), (at, text)
        status, text = said(capsys, file, "--sha256", expected, "--like", good)
        assert status == 1 and "differs from" in text, (at, text)
        if at in places:
            # RECORD alone knows, and says which.
            assert places[at] in said(capsys, file)[1]
            assert f" of the 6 of {places[at]}" in text, (at, text)
        else:
            # A header that is broken hides its file.
            assert f"byte {at}, " in text or ", where one of them ends, of the 6 of " in text, (at, text)


def test_what_nobody_vouches_for_is_said(tmp_path, capsys):
    file = wheel(tmp_path / "torch-1-py3-none-any.whl")
    status, text = said(capsys, file)
    assert status == 0 and "vouched for by nobody" in text and digest(file) in text
    beside = tmp_path / f"{file.name}.sha256"
    beside.write_text(f"{digest(file)}  {file.name}\n")
    assert said(capsys, file) == (0, f"{file}: every byte is as {beside} says, and every file as RECORD says\n")
    beside.write_text(f"{'0' * 64}  {file.name}\n")
    status, text = said(capsys, file)
    assert status == 1 and f"the wheel that {beside} speaks of" in text and "expected  0000" in text


def test_a_fork_is_compared_with_the_wheel_it_was_made_of(tmp_path, capsys):
    official = wheel(tmp_path / "official.whl")
    files = {**FILES, "torch/b.py": b"b = 3\n"}
    fork = wheel(tmp_path / "fork.whl", files, "torch-1+fork")
    assert said(capsys, fork, "--like", official)[0] == 0
    rows = zipfile.ZipFile(fork).read("torch-1+fork.dist-info/RECORD").decode()
    changed = wheel(tmp_path / "changed.whl", {**files, "torch/a.py": b"a = 7\n"}, "torch-1+fork", rows)
    status, text = said(capsys, changed, "--like", official)
    assert status == 1 and "byte 4, 0x37 in place of 0x31, of the 6 of torch/a.py" in text, text


FORK = {"torch/lib/libtorch_pinbuddy.so": b"library", "pinbuddy/bin/pinbuddy-tools": b"program"}
VERSIONS = ("2.14.0+cu130", "2.15.0+cu132")
PLUGIN = {f"pinbuddy/lib/{it}/libtorch_pinbuddy.so": it.encode() for it in VERSIONS}


@pytest.mark.parametrize("changed", ["", *FORK, *PLUGIN])
def test_provenance_names_each_library_and_the_program(tmp_path, capsys, changed):
    digests = {name: hashlib.sha256(b"?" if name == changed else content).hexdigest() for name, content in (FORK | PLUGIN).items()}
    fork = dict(zip(("library_sha256", "program_sha256"), map(digests.get, FORK)))
    plugin = {"libraries": [{"torch_version": it, "library_sha256": digests[name]} for it, name in zip(VERSIONS, PLUGIN)]}
    for files, provenance in [(FORK, fork), (PLUGIN, plugin)]:
        file = wheel(tmp_path / "of.whl", {**files, "torch-1.dist-info/pinbuddy.json": json.dumps(provenance).encode()})
        status, text = said(capsys, file)
        assert status == (changed in files), text
        assert not status or f"{changed} is not the file that torch-1.dist-info/pinbuddy.json names" in text


ONE, LISTED, LAST = {"torch/a.py": b"a = 1\n"}, "torch/a.py,sha256=x,6\n", "torch-1.dist-info/RECORD,,\n"


@pytest.mark.parametrize(("made", "why"), [
    *(({"files": {it: b"x"}}, "leaves the wheel's folder") for it in ("../x", "torch/../../x", "/tmp/x", "torch\\..\\x", "c:/x")),
    ({"files": {"torch/x": b"x", "torch/x/y": b"x"}}, "both a file and a folder: torch/x"),
    ({"files": {"torch/x/y": b"x", "torch/x": b"x"}}, "both a file and a folder: torch/x"),
    ({"mode": stat.S_IFLNK | 0o777}, "a symbolic link: torch/a.py"),
    # Lists that do not name each file once.
    ({"files": ONE, "rows": LAST}, "torch-1.whl is no wheel"),
    ({"files": ONE, "rows": f"torch/a.py,,\n{LAST}"}, "torch-1.whl is no wheel"),
    ({"files": ONE, "rows": LISTED * 2 + LAST}, "torch-1.whl is no wheel"),
    ({"files": ONE, "rows": f"torch/a.py,sha256=x,-2\n{LAST}"}, "torch-1.whl is no wheel"),
    ({"files": ONE, "rows": f"torch/a.py,sha256=x,six\n{LAST}"}, "torch-1.whl is no wheel"),
    ({"files": ONE, "rows": ""}, "torch-1.whl is no wheel"),
    # Names do nothing to a terminal.
    ({"files": {"torch/\x1b[2Ka.py": b"a = 1\n"}, "rows": f"torch/\x1b[2Ka.py,sha256=x,6\n{LAST}"}, "torch/\\x1b[2Ka.py in "),
    # What is unpacked whole is not unpacked.
    *(({"method": it}, "is packed in a way that wheels are not") for it in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)),
])  # fmt: skip
def test_what_no_build_makes_is_refused(tmp_path, capsys, made, why):
    status, text = said(capsys, wheel(tmp_path / "torch-1.whl", **made))
    assert status == 1 and why in text and "\x1b" not in text, text


def test_what_is_no_wheel_is_said(tmp_path, capsys):
    (tmp_path / "text.whl").write_text("text")
    assert "is no wheel" in said(capsys, tmp_path / "text.whl")[1]
    text = said(capsys, tmp_path / "none.whl")[1]
    assert f"{tmp_path / 'none.whl'} cannot be read\n  because   No such file" in text and "\n  to do     name the wheel's file" in text
    # Both are said where the wheel and the one to compare with are wrong.
    status, text = said(capsys, wheel(tmp_path / "torch-1.whl"), "--sha256", "0" * 64, "--like", tmp_path / "none.whl")
    assert status == 1 and "speaks of" in text and "No such file" in text


def test_a_file_that_unpacks_to_more_than_was_promised_is_not_read_on(tmp_path):
    size = 64 << 20
    file = wheel(tmp_path / "torch-1.whl", {"torch/a.py": bytes(size)}, rows=LISTED + LAST)
    opened = _verify.Wheel(file)
    assert sum(map(len, opened.chunks("torch/a.py"))) == 7
    assert not opened.is_good("torch/a.py")
