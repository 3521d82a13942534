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


def wheel(path: Path, files: dict[str, bytes] = FILES, stem: str = "torch-1", rows: str | None = None, mode: int = 0) -> Path:
    """A wheel of these files of that mode, with the RECORD that fits or with these rows."""

    def row(name: str, content: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(content)}\n"

    record = f"{stem}.dist-info/RECORD"
    if rows is None:
        rows = "".join(row(*it) for it in files.items()) + f"{record},,\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, record: rows.encode()}.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            archive.writestr(entry, content)
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


@pytest.mark.parametrize("key", ["library_sha256", "program_sha256"])
def test_a_forks_provenance_names_its_library_and_program(tmp_path, capsys, key):
    library, program = b"library", b"program"
    provenance = {"library_sha256": hashlib.sha256(library).hexdigest(), "program_sha256": hashlib.sha256(program).hexdigest()}

    def fork(provenance: dict) -> Path:
        files = {"torch/lib/libtorch_pinbuddy.so": library, "pinbuddy/bin/pinbuddy-tools": program}
        return wheel(tmp_path / "fork.whl", {**files, "torch-1.dist-info/pinbuddy.json": json.dumps(provenance).encode()})

    assert said(capsys, fork(provenance))[0] == 0
    status, text = said(capsys, fork({**provenance, key: "0" * 64}))
    assert status == 1 and "is not the file that torch-1.dist-info/pinbuddy.json names" in text


def test_a_plugins_provenance_names_each_of_its_libraries(tmp_path, capsys):
    libraries = {"2.14.0+cu130": b"one", "2.15.0+cu132": b"other"}

    def plugin(changed: str) -> Path:
        known = [{"torch_version": it, "library_sha256": hashlib.sha256(b"?" if it == changed else libraries[it]).hexdigest()} for it in libraries]
        files = {f"pinbuddy/lib/{it}/libtorch_pinbuddy.so": content for it, content in libraries.items()}
        return wheel(tmp_path / "plugin.whl", {**files, "torch-1.dist-info/pinbuddy.json": json.dumps({"libraries": known}).encode()})

    assert said(capsys, plugin(""))[0] == 0
    for version in libraries:
        status, text = said(capsys, plugin(version))
        assert status == 1 and f"pinbuddy/lib/{version}/libtorch_pinbuddy.so is not the file that torch-1" in text


@pytest.mark.parametrize(("names", "why"), [
    (["../x"], "leaves the wheel's folder"),
    (["torch/../../x"], "leaves the wheel's folder"),
    (["/tmp/x"], "leaves the wheel's folder"),
    (["torch\\..\\x"], "leaves the wheel's folder"),
    (["c:/x"], "leaves the wheel's folder"),
    (["torch/x", "torch/x/y"], "both a file and a folder: torch/x"),
    (["torch/x/y", "torch/x"], "both a file and a folder: torch/x"),
])  # fmt: skip
def test_paths_that_a_build_refuses_are_refused(tmp_path, capsys, names, why):
    file = wheel(tmp_path / "torch-1.whl", dict.fromkeys(names, b"x"))
    status, text = said(capsys, file)
    assert status == 1 and why in text, text


def test_links_are_refused(tmp_path, capsys):
    file = wheel(tmp_path / "torch-1.whl", mode=stat.S_IFLNK | 0o777)
    status, text = said(capsys, file)
    assert status == 1 and "a symbolic link: torch/a.py" in text, text


@pytest.mark.parametrize("rows", [
    "torch-1.dist-info/RECORD,,\n",  # a file that RECORD lacks
    "torch/a.py,,\ntorch-1.dist-info/RECORD,,\n",  # without a hash
    "torch/a.py,sha256=x,6\ntorch/a.py,sha256=x,6\ntorch-1.dist-info/RECORD,,\n",
    "torch/a.py,sha256=x,-2\ntorch-1.dist-info/RECORD,,\n",
    "torch/a.py,sha256=x,six\ntorch-1.dist-info/RECORD,,\n",
    "",
])
def test_lists_that_do_not_name_each_file_once_are_refused(tmp_path, capsys, rows):
    file = wheel(tmp_path / "torch-1.whl", {"torch/a.py": b"a = 1\n"}, rows=rows)
    status, text = said(capsys, file)
    assert status == 1 and f"{file} is no wheel" in text


def test_what_is_no_wheel_is_said(tmp_path, capsys):
    (tmp_path / "text.whl").write_text("text")
    assert "is no wheel" in said(capsys, tmp_path / "text.whl")[1]
    text = said(capsys, tmp_path / "none.whl")[1]
    assert f"{tmp_path / 'none.whl'} cannot be read\n  because   No such file" in text and "\n  to do     name the wheel's file" in text


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_is_unpacked_whole_is_not_unpacked(tmp_path, capsys, method):
    file = wheel(tmp_path / "torch-1.whl")
    with zipfile.ZipFile(file, "a", method) as archive:
        archive.writestr("torch/c.py", bytes(1 << 20))
    status, text = said(capsys, file)
    assert status == 1 and "is packed in a way that wheels are not" in text


def test_names_do_nothing_to_a_terminal(tmp_path, capsys):
    rows = "torch/\x1b[2Ka.py,sha256=x,6\ntorch-1.dist-info/RECORD,,\n"
    status, text = said(capsys, wheel(tmp_path / "torch-1.whl", {"torch/\x1b[2Ka.py": b"a = 1\n"}, rows=rows))
    assert status == 1 and "torch/\\x1b[2Ka.py in " in text and "\x1b" not in text


def test_both_are_said_where_the_wheel_and_the_one_to_compare_with_are_wrong(tmp_path, capsys):
    file = wheel(tmp_path / "torch-1.whl")
    status, text = said(capsys, file, "--sha256", "0" * 64, "--like", tmp_path / "none.whl")
    assert status == 1 and "speaks of" in text and "No such file" in text


def test_a_file_that_unpacks_to_more_than_was_promised_is_not_read_on(tmp_path):
    size = 64 << 20
    rows = "torch/a.py,sha256=x,6\ntorch-1.dist-info/RECORD,,\n"
    file = wheel(tmp_path / "torch-1.whl", {"torch/a.py": bytes(size)}, rows=rows)
    opened = _verify.Wheel(file)
    assert sum(map(len, opened.chunks("torch/a.py"))) == 7
    assert not opened.is_good("torch/a.py")
