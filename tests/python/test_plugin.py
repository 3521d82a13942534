"""The plug-in beside an official torch: it is loaded if it fits, and never otherwise.

All other tests of this folder run with it, too; these are about loading. They are for an environment with
the plug-in, and left out in a fork's.
"""

import hashlib
import os
import re
import shutil
from base64 import urlsafe_b64encode
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import command_line, report
from pinbuddy import _match
from plugin import IS_PLUGIN, PACKAGE, change, copy

pytestmark = pytest.mark.skipif(not IS_PLUGIN, reason="torch is a fork here, with no plug-in")
# Once for each way; the others are forked, and find the plug-in by the same function of torch's.
real = pytest.mark.real_start("how torch finds the plug-in is what is tested")

SMALL = {"BUDDY_BLOCK_SIZE_MB": "16", "BUDDY_BLOCK_COUNT": "1"}

# Prints who serves pinned memory, and whether it works.
WHO = """
import json, torch
tensor = torch.empty(8 << 20, dtype=torch.uint8, pin_memory=True).fill_(7)
import pinbuddy
hits = (pinbuddy.stats()["engine"] or {}).get("hits")
there = bool((tensor.to("cuda").cpu() == 7).all())
pinbuddy.warm_up(wait=True)
pinbuddy.empty_cache()
print(json.dumps([pinbuddy.enabled(), pinbuddy.stats()["state"], tensor.is_pinned() and there, pinbuddy.version(),
                  len(pinbuddy.config()) > 5, pinbuddy.memory_summary(), torch.__version__, hits]))
"""


def test_every_file_is_the_one_that_record_lists():
    files = distribution("pinbuddy").files
    assert len(files) > 15
    for file in files:
        if file.hash is not None and file.suffix != ".pyc":
            digest = hashlib.new(file.hash.mode, file.locate().read_bytes()).digest()
            assert urlsafe_b64encode(digest).decode().rstrip("=") == file.hash.value, file
    assert not any(str(file).startswith("torch/") for file in files)


@real
def test_it_serves_beside_an_official_torch_once_that_is_imported(run):
    """The first pinned tensor is the engine's, before anybody imports pinbuddy."""
    on, state, works, version, settings, _, torch, hits = run(WHO, **SMALL).value
    assert on and state == "on" and works and settings and hits == 1
    assert "pinbuddy" not in torch and version.startswith(f"{torch}.pinbuddy.")


# What is done to a copy of the package, and what is said of it.
MISFITS = {
    "version": (lambda package: change(package, torch="2.7.0+cu126"), "is not one that the plug-in fits (2.7.0+cu126)"),
    "header": (lambda package: change(package, header_sha256="0" * 64), "is not the one of the official torch"),
    "no library": (lambda package: shutil.rmtree(package / "lib"), "is missing"),
    "library": (lambda package: [it.write_text("no library") for it in package.glob("lib/*/*.so")], "OSError"),
    "manifest": (lambda package: (package / "plugin.json").write_text("{"), "JSONDecodeError"),
}
SPOILT = {kind: act for kind, (act, _) in MISFITS.items()} | {None: lambda package: None}
SPOILT["no manifest"] = lambda package: (package / "plugin.json").unlink()


@pytest.mark.parametrize("kind", [pytest.param("version", marks=real), *[*MISFITS][1:]])
def test_what_does_not_fit_is_one_line_and_stocks_allocator(run, tmp_path, kind):
    SPOILT[kind](copy(tmp_path))
    program = """
    import json, torch
    tensor = torch.empty(8 << 20, pin_memory=True).fill_(7)
    loaded = "libtorch_pinbuddy" in open("/proc/self/maps").read()
    print(json.dumps([tensor.is_pinned(), bool((tensor.to("cuda").cpu() == 7).all()), loaded]))
    """
    outcome = run(program, PYTHONPATH=tmp_path)
    assert outcome.value == [True, True, False]
    (line,) = outcome.warnings
    assert MISFITS[kind][1] in line and "PyTorch's own allocator serves" in line
    assert "python -m pinbuddy doctor" in line
    # No warning if it is switched off.
    assert run(program, PYTHONPATH=tmp_path, BUDDY_DISABLE="1").warnings == []


@pytest.mark.parametrize("kind, variables", [("header", {}), (None, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})])
def test_programs_that_ask_go_on_where_it_does_not_serve(run, tmp_path, kind, variables):
    SPOILT[kind](copy(tmp_path))
    outcome = run(WHO, PYTHONPATH=tmp_path, **SMALL, **variables)
    on, state, works, version, settings, summary, *_ = outcome.value
    assert (on, state, works, settings) == (False, "absent", True, False)
    assert summary.startswith("pinbuddy is off: the plug-in was not loaded") and "\n" not in summary
    assert kind or (outcome.stderr, version) == ("", distribution("pinbuddy").version)


def test_torch_is_imported_where_pip_has_removed_the_package_with_the_fork(run, tmp_path):
    (copy(tmp_path) / "_plugin.py").unlink()
    (line,) = run("import torch; print(torch.__version__)", PYTHONPATH=tmp_path).warnings
    assert "pip install --force-reinstall --no-deps pinbuddy-*.whl" in line


def test_who_asks_before_the_library_is_loaded_is_answered_by_it_afterwards(run):
    program = "before = pinbuddy.enabled()\nfrom pinbuddy import _plugin\nanswer(before, _plugin.autoload(), pinbuddy.enabled())"
    assert run(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0").value == [False, None, True]


def test_a_closed_standard_error_is_no_reason_to_fail(run, tmp_path):
    SPOILT["version"](copy(tmp_path))
    program = """
    import os, subprocess, sys, json
    code = "import torch; print(torch.empty(8, pin_memory=True).is_pinned())"
    done = subprocess.run(f'exec "{sys.executable}" -c "{code}" 2>&-', shell=True, capture_output=True, text=True)
    print(json.dumps([done.returncode, done.stdout.strip()]))
    """
    assert run(program, PYTHONPATH=tmp_path).value == [0, "True"]


# The pack for a GPU machine has no fork.
@pytest.mark.skipif("PINBUDDY_FORK_PYTHON" not in os.environ, reason="there is no environment with a fork")
def test_it_steps_aside_in_a_fork(run, tmp_path):
    copy(tmp_path)
    program = """
    import json, os, subprocess, sys
    code = "import torch, pinbuddy, json; torch.empty(8 << 20, pin_memory=True);"
    code += "maps = {it.split()[-1] for it in open('/proc/self/maps') if 'libtorch_pinbuddy' in it};"
    code += "print(json.dumps([torch.__version__, pinbuddy.enabled(), pinbuddy.__file__, *maps]))"
    done = subprocess.run([os.environ["PINBUDDY_FORK_PYTHON"], "-c", code], capture_output=True, text=True)
    print(json.dumps([done.stdout and json.loads(done.stdout), done.stderr]))
    """
    said, stderr = run(program, PYTHONPATH=tmp_path, **SMALL).value
    version, on, package, library = said
    assert "pinbuddy" in version and on and stderr == ""
    assert package.startswith(str(tmp_path)), "the plug-in's package comes first"
    assert library.endswith("/torch/lib/libtorch_pinbuddy.so")


def headers_in(folder: Path) -> Path:
    """The installed torch's header of the allocator, below this folder."""
    import torch

    (header := folder / _match._HEADER).parent.mkdir(parents=True)
    return Path(shutil.copy(Path(torch.__file__).parent / "include" / _match._HEADER, header))


@pytest.mark.parametrize("kind", ["conda", "checkout"])
def test_other_layouts(tmp_path, monkeypatch, kind):
    """Of conda, with libraries and headers in its prefix; of an editable install, whose header is only in the sources."""
    import torch

    package = tmp_path / "lib/python3/site-packages/torch"
    assert _match._loaded("libtorch_cpu.so").samefile(Path(torch.__file__).parent / "lib/libtorch_cpu.so")
    libraries, headers = (tmp_path / "lib", tmp_path / "include") if kind == "conda" else (package / "lib", package.parent / "aten/src")
    monkeypatch.setattr(_match, "_loaded", lambda name: libraries / name)
    header = headers_in(headers)
    there = SimpleNamespace(__file__=str(package / "__init__.py"), __version__=torch.__version__, version=torch.version)
    found = _match.of_import(there)
    assert (found.form, found.header) == ("plug-in", header) and found.library.is_relative_to(PACKAGE), found
    header.write_text("another")
    assert f"{header} is not the one of the official torch" in _match.of_import(there).why


def test_an_unpacked_libtorch_is_known_by_its_version_and_header_and_one_without_cuda_is_nothing_to_warn_of(tmp_path):
    import torch

    headers_in(tmp_path / "include")
    (tmp_path / "build-version").write_text(f"{torch.__version__}\n")
    match = _match.of_folder(tmp_path)
    assert match.form == "plug-in" and match.library.is_relative_to(PACKAGE)
    (tmp_path / "build-version").write_text("2.15.0+cpu\n")
    assert _match.of_folder(tmp_path).expected
    (tmp_path / "build-version").unlink()
    assert "neither a version.py" in _match.of_folder(tmp_path).why
    (tmp_path / "version.py").write_text("__version__ = '2.15.0+cpu'\ncuda: Optional[str] = None\n")
    match = _match.of_folder(tmp_path)
    assert match.library is None and match.expected and "has no CUDA" in match.why


@pytest.mark.parametrize("kind, variables, why, to_do", [
    (None, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, "switches autoloading off", "^unset TORCH_DEVICE_BACKEND_AUTOLOAD$"),
    (None, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "true"}, "='true' switches autoloading off", "^unset TORCH_DEVICE_BACKEND_AUTOLOAD$"),
    ("library", {}, "^the plug-in's library is damaged$", "reinstall"),
    ("no library", {}, "is missing$", "^reinstall the plug-in: pip install --force-reinstall"),
    ("header", {}, "is not the one of the official torch", "^reinstall that torch .* --force-reinstall --no-deps torch==2"),
    ("version", {}, r"2\.7\.0\+cu126", r"pip install pinbuddy-\*\.whl"),
    ("no manifest", {}, "not a pinbuddy fork", ""),
])
def test_the_doctor_names_what_is_wrong(tmp_path, kind, variables, why, to_do):
    SPOILT[kind](copy(tmp_path))
    said = report(PYTHONPATH=tmp_path, **variables)
    assert re.search(why, said["why"]) and re.search(to_do, said["to_do"]), said


def test_the_doctor_names_a_zip_file_and_where_there_is_no_entry_point_or_no_torch(run, tmp_path):
    copy(tmp_path)
    said = report(PYTHONPATH=shutil.make_archive(tmp_path / "it", "zip", tmp_path))
    assert "lies in a zip file" in said["why"] and said["fits"], said
    (next(tmp_path.glob("*.dist-info")) / "entry_points.txt").write_text("")
    # -S: ignores installed packages and their entry points.
    program = """
    import json, subprocess, sys
    from pathlib import Path
    site = str(Path(__import__("torch").__file__).parent.parent)
    said = []
    for path in ([site], []):
        code = f"import sys; sys.path += {path!r}; from pinbuddy import _doctor; print(_doctor.examine().table())"
        done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True)
        said.append(done.stdout)
    print(json.dumps(said))
    """
    no_entry_point, no_torch = run(program, PYTHONPATH=tmp_path).value
    assert "pinbuddy has no PyTorch to serve: torch cannot be imported (ModuleNotFoundError" in no_torch
    assert "install torch in this environment" in no_torch
    # The copy comes first on the path, and hides the installed package.
    assert "does not find the plug-in's entry point" in no_entry_point


def test_the_library_command_prints_the_path_or_the_reason():
    import torch

    folder = Path(torch.__file__).parent
    for arguments in ([], ["--torch", str(folder)]):
        done = command_line("library", *arguments)
        assert Path(done.stdout.strip()).is_relative_to(PACKAGE) and done.returncode == 0
    done = command_line("library", "--torch", os.sep)
    assert done.returncode == 1 and done.stderr.startswith("no library of pinbuddy's fits: ")
