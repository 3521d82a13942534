#!/usr/bin/env python3
"""An independent reader of a fork wheel: the standard library, readelf and users' `verify-wheel`, and no code of the build tool's.

    check_wheel.py FORK_WHEEL OFFICIAL_WHEEL [NAME...]

Says of each invariant, or of these, as JSON, what is wrong with it or nothing, and exits with 1 if one does not hold.
"""

import hashlib
import json
import mmap
import os
import re
import struct
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

# The next build packs that folder.
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parents[2] / "cxx-bridge/python"))
from pinbuddy import _verify  # noqa: E402

HEADER = "torch/include/ATen/core/CachingHostAllocator.h"
LIBRARY = "libtorch_pinbuddy.so"
DEFAULTS = "torch/lib/libtorch_pinbuddy.toml"
PROGRAM = "pinbuddy/bin/pinbuddy-tools"


class Wheel:
    """A wheel and its .dist-info."""

    def __init__(self, path):
        self.path = Path(path)
        self.zip = zipfile.ZipFile(path)
        self.bytes = mmap.mmap(self.zip.fp.fileno(), 0, access=mmap.ACCESS_READ)
        self.infos = self.zip.infolist()
        self.by_name = {info.filename: info for info in self.infos}
        tops = {name.split("/")[0] for name in self.by_name}
        (self.dist_info,) = [top for top in tops if top.endswith(".dist-info")]
        self.stem = self.dist_info.removesuffix(".dist-info")

    def text(self, name):
        return self.zip.read(name).decode()

    def raw(self, info):
        """A hash of the bytes of an entry as they lie in the file."""
        signature, name_size, extra_size = struct.unpack_from("<4s22xHH", self.bytes, info.header_offset)
        assert signature == b"PK\3\4", f"{info.filename}: no local header"
        name = info.header_offset + 30
        assert self.bytes[name : name + name_size].decode() == info.filename
        begin = name + name_size + extra_size
        assert begin + info.compress_size <= len(self.bytes), f"{info.filename}: cut short"
        with memoryview(self.bytes) as view:
            return hashlib.sha256(view[begin : begin + info.compress_size]).digest()


def elf_strings(data):
    """The NEEDED and SONAME entries, and the version needs, of an ELF file, as readelf says them."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        command = ["readelf", "--wide", "--dynamic", "--version-info", file.name]
        said = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout
    soname = re.search(r"\(SONAME\) .*\[(.*)\]", said)
    needs = said.partition("Version needs section")[2]
    return re.findall(r"\(NEEDED\) .*\[(.*)\]", said), soname and soname[1], re.findall(r"Name: (\S+)", needs)


def newest(versions, family):
    numbers = [tuple(map(int, it.split("_")[1].split("."))) for it in versions if re.fullmatch(family + r"_[0-9.]+", it)]
    return max(numbers, default=(0,))


def check_record(fork, _official):
    """Every file is in RECORD once, with its own hash and size, as `pinbuddy verify-wheel` reads it; RECORD is last."""
    assert fork.infos[-1].filename == f"{fork.dist_info}/RECORD", "RECORD is not the last entry"
    _verify.Wheel(fork.path).check()


def ours(fork, official):
    """The entries of the fork that are new or not the official wheel's."""
    info = fork.dist_info
    replaced = {HEADER, "torch/version.py", "torch/lib/libtorch.so"}
    replaced |= {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "top_level.txt", "entry_points.txt")}
    return replaced, set(fork.by_name) - {name.replace(official.dist_info, info, 1) for name in official.by_name}


def check_untouched(fork, official):
    """Every other entry is the official wheel's: compressed bytes, mode, time, all of it."""
    replaced, _ = ours(fork, official)
    fields = ("CRC", "compress_size", "file_size", "compress_type", "date_time", "external_attr", "create_system", "flag_bits", "extra", "comment")
    compared = 0
    for info in official.infos:
        name = info.filename.replace(official.dist_info, fork.dist_info, 1)
        if name in replaced or name.endswith((".dist-info/RECORD.jws", ".dist-info/RECORD.p7s")):
            continue
        assert name in fork.by_name, f"{name} is lost"
        other = fork.by_name[name]
        for field in fields:
            assert getattr(info, field) == getattr(other, field), f"{name}: {field}"
        assert official.raw(info) == fork.raw(other), f"{name}: its bytes differ"
        compared += 1
    assert compared > 0.99 * len(official.infos) - 10, f"only {compared} compared"


def check_additions(fork, official):
    """What is new is ours: headers, library, program, package, licences, provenance, bill of materials."""
    _, added = ours(fork, official)
    info = fork.dist_info
    allowed = ("torch/include/pinbuddy/", "torch/_pinbuddy.py", "pinbuddy/", f"{info}/licenses/pinbuddy/", f"{info}/sboms/pinbuddy.",
               f"{info}/pinbuddy.json", f"torch/lib/{LIBRARY}", DEFAULTS, "torch/include/ATen/core/",
               f"{info}/entry_points.txt")
    strangers = [name for name in added if not name.startswith(allowed)]
    assert not strangers, strangers
    for name in ("pinbuddy/__init__.py", "torch/_pinbuddy.py", f"torch/lib/{LIBRARY}", PROGRAM, f"{info}/licenses/pinbuddy/LICENSE",
                 f"{info}/licenses/pinbuddy/NOTICE", f"{info}/sboms/pinbuddy.cdx.json"):
        assert name in added, f"{name} is missing"
    assert any(name.startswith("torch/include/pinbuddy/") for name in added), "no headers of ours"
    assert not any("__pycache__" in name for name in added)
    assert fork.by_name[PROGRAM].external_attr >> 16 & 0o777 == 0o755, "it cannot be run"
    path = f"{info}/entry_points.txt"
    before = official.by_name.get(f"{official.dist_info}/entry_points.txt")
    lines = official.zip.read(before).decode().rstrip().splitlines() if before else ["[console_scripts]"]
    # A command, and what torch calls at the end of its import.
    script, backend = "pinbuddy = pinbuddy.__main__:main", "pinbuddy = torch._pinbuddy:autoload"
    found = fork.text(path).splitlines()
    assert found[-3:] == ["", "[torch.backends]", backend], found
    found = found[:-3]
    assert found.count(script) == 1 and [line for line in found if line != script] == lines, found
    assert found[found.index(script) - 1] == "[console_scripts]", found


def given(fork):
    """What the provenance says that the wheel is made of."""
    return json.loads(fork.text(f"{fork.dist_info}/pinbuddy.json"))["inputs"]


def check_versions(fork, official):
    """The version is one and the same everywhere, and satisfies ==X.Y.Z."""
    version = fork.stem.split("-", 1)[1]
    number = rf"\.{given(fork)['build']}" if "build" in given(fork) else ""
    assert re.fullmatch(rf"\d+\.\d+\.\d+\+(\w+\.)?pinbuddy(\.\d+){{3}}{number}(\.d[0-9a-f]{{8}})?", version), version
    name, in_name, *tags = fork.path.name.removesuffix(".whl").split("-")
    assert (name, in_name) == ("torch", version), fork.path.name
    metadata = fork.text(f"{fork.dist_info}/METADATA")
    head = metadata.split("\n\n")[0].splitlines()
    assert [line for line in head if line.startswith("Version: ")] == [f"Version: {version}"]
    before = official.text(f"{official.dist_info}/METADATA").splitlines()
    links = [f"Project-URL: {label}, {url}" for label, url in given(fork).get("links", {}).items()]
    assert [it for it in head if it.startswith("Project-URL: ")] == [it for it in before if it.startswith("Project-URL: ")] + links, head
    after = [line for line in metadata.splitlines() if not line.startswith("License-File: pinbuddy/") and line not in links]
    changed = [(a, b) for a, b in zip(before, after) if a != b]
    assert len(before) == len(after) and len(changed) == 1, changed
    assert version.startswith(changed[0][0].removeprefix("Version: ")), changed
    python = fork.text("torch/version.py")
    assert f"__version__ = '{version}'" in python
    official_version = re.search("__version__ = '(.*)'", official.text("torch/version.py"))[1]
    assert python == official.text("torch/version.py").replace(official_version, version)
    wheel = fork.text(f"{fork.dist_info}/WHEEL").splitlines()
    assert [line for line in wheel if line.startswith("Tag: ")] == ["Tag: " + "-".join(tags)]
    assert "pinbuddy" in fork.text(f"{fork.dist_info}/top_level.txt").split()


def check_platform(fork, official):
    """The official tag, and no newer symbol version in what we add than it and the official libraries need."""
    assert fork.path.name.split("-")[-1] == official.path.name.split("-")[-1], fork.path.name
    tag = re.search(r"manylinux_2_(\d+)_(x86_64|aarch64)\.whl$", official.path.name)
    torch = [version for library in ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so")
             for version in elf_strings(official.zip.read(f"torch/lib/{library}"))[2]]
    for file in (f"torch/lib/{LIBRARY}", "torch/lib/libtorch.so", PROGRAM):
        versions = elf_strings(fork.zip.read(file))[2]
        glibc = newest(versions, "GLIBC")
        assert glibc <= (2, int(tag[1])), f"{file}: {glibc} in {tag[0]}"
        for name in ("GLIBCXX", "CXXABI"):
            found, most = newest(versions, name), newest(torch, name)
            assert found <= most, f"{file}: {name} {found}, torch's {most}"


def check_loading(fork, official):
    """libtorch.so needs our library, and everything that it needed before."""
    needed, _, _ = elf_strings(fork.zip.read("torch/lib/libtorch.so"))
    before, _, _ = elf_strings(official.zip.read("torch/lib/libtorch.so"))
    assert sorted(needed) == sorted([*before, LIBRARY]), needed
    library = fork.zip.read(f"torch/lib/{LIBRARY}")
    needed, soname, _ = elf_strings(library)
    assert soname == LIBRARY, soname
    assert len(library) <= 3 << 20, f"{len(library)} bytes"
    known = {name.rsplit("/", 1)[-1] for name in fork.by_name}
    system = r"(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux-(x86-64|aarch64)|libcudart)\.so\.\d+"
    for name in needed:
        assert name in known or re.fullmatch(system, name), f"{LIBRARY} needs {name}"
    program = fork.zip.read(PROGRAM)
    # With completions, and the pages that messages name.
    assert len(program) <= 4 << 20, f"{len(program)} bytes"
    for needs in elf_strings(program)[0]:
        assert re.fullmatch(system, needs), f"{PROGRAM} needs {needs}"
    for file in (library, program):
        assert b"/home/" not in file and b"/root/" not in file, "a path of the build machine"


def check_provenance(fork, official):
    """The provenance names the wheel that this was made from, and the bill of materials agrees."""
    told = json.loads(fork.text(f"{fork.dist_info}/pinbuddy.json"))
    with open(official.path, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    assert told["inputs"]["base_wheel"] == {"name": official.path.name, "sha256": sha256}
    assert told["version"] == fork.stem.split("-", 1)[1]
    headers = [hashlib.sha256(wheel.zip.read(HEADER)).hexdigest() for wheel in (official, fork)]
    assert told["header_sha256"] == headers and headers[0] != headers[1]
    assert told["library_sha256"] == hashlib.sha256(fork.zip.read(f"torch/lib/{LIBRARY}")).hexdigest()
    assert told["program_sha256"] == hashlib.sha256(fork.zip.read(PROGRAM)).hexdigest()
    assert told["inputs"]["patches"] and told["inputs"]["tools"]["rustc"]
    bill = json.loads(fork.text(f"{fork.dist_info}/sboms/pinbuddy.cdx.json"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert "serialNumber" not in bill and "timestamp" not in bill["metadata"]
    assert bill["components"][0]["hashes"][0]["content"] == sha256
    names = {component["name"] for component in bill["components"]}
    assert {"pinbuddy-core", "pinbuddy-bridge", "cxx", "pinbuddy-tools", "clap"} <= names, names
    refs = {component["bom-ref"] for component in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    for dependency in bill["dependencies"]:
        assert dependency["ref"] in refs and set(dependency["dependsOn"]) <= refs


def check_defaults(fork, _official):
    """The version knows links and defaults; the provenance and the bill of materials know the defaults beside the library."""
    told, links = given(fork).get("defaults", {}), given(fork).get("links", {})
    component = json.loads(fork.text(f"{fork.dist_info}/sboms/pinbuddy.cdx.json"))["metadata"]["component"]
    listed = {it["name"]: it["value"] for it in component.get("properties", [])}
    assert listed == {f"pinbuddy:default:{name}": value for name, value in told.items()}, listed
    suffix = re.search(r"\.d([0-9a-f]{8})$", fork.stem)
    assert (DEFAULTS in fork.by_name, bool(suffix)) == (bool(told), bool(told or links)), (told, links, suffix)
    text = fork.text(DEFAULTS) if told else ""
    assert tomllib.loads(text) == told, text
    if suffix:
        text += "".join(f"Project-URL: {label}, {url}\n" for label, url in sorted(links.items()))
        assert hashlib.sha256(text.encode()).hexdigest()[:8] == suffix[1]


CHECKS = [check_record, check_untouched, check_additions, check_versions, check_platform, check_loading, check_provenance, check_defaults]


def main():
    fork, official, *only = sys.argv[1:]
    fork, official = Wheel(fork), Wheel(official)
    results = {}
    for check in CHECKS:
        name = check.__name__.removeprefix("check_")
        if only and name not in only:
            continue
        try:
            check(fork, official)
            results[name] = None
        except Exception as error:  # noqa: BLE001 - each check reports, none stops the others
            results[name] = f"{type(error).__name__}: {error}"[:500]
    print(json.dumps(results))
    sys.exit(any(results.values()))


if __name__ == "__main__":
    main()
