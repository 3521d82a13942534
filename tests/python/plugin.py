"""Which of the two brought the library that is tested, a fork wheel or the plug-in; how C++ programs get it; and plug-ins that tests
make up, for programs in a process of their own."""

import json
import os
import shutil
from pathlib import Path

import pinbuddy

PACKAGE = Path(pinbuddy.__file__).parent
IS_PLUGIN = (PACKAGE / "plugin.json").exists()
# Whether the library is built with assertions.
ASSERTS = os.environ.get("PINBUDDY_EXPECT_DEBUG") == "1"


def library() -> Path:
    import torch
    from pinbuddy import _match

    return _match.of_import(torch).library


def for_cpp() -> dict[str, str]:
    """Variables with which a program linked with libtorch finds it and loads our library; a fork's libtorch loads it by itself."""
    import torch

    folder = Path(torch.__file__).parent
    runtime = [it.parent for it in folder.parent.glob("nvidia/*/lib/libcudart.so.*")]
    paths = [folder / "lib", *runtime, os.environ.get("LD_LIBRARY_PATH")]
    preloaded = [os.environ.get("LD_PRELOAD"), library() if IS_PLUGIN else None]
    joined = lambda parts: ":".join(str(it) for it in parts if it)
    return {"LD_LIBRARY_PATH": joined(paths), "LD_PRELOAD": joined(preloaded)}


def copy(folder: Path) -> Path:
    """Puts the installed plug-in into ``folder``, for PYTHONPATH; returns its package."""
    for it in [PACKAGE, *PACKAGE.parent.glob("pinbuddy-*.dist-info")]:
        shutil.copytree(it, folder / it.name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / PACKAGE.name


def change(package: Path, **values) -> None:
    """Changes each library's row in a copy's manifest."""
    path = package / "plugin.json"
    manifest = json.loads(path.read_text())
    for library in manifest["libraries"]:
        library.update(values)
    path.write_text(json.dumps(manifest))
