"""What the entry point for PyTorch calls at the end of ``import torch``: loads the plug-in's library.

Invariant: whatever fails, torch is imported all the same, and one line says why.
"""

import ctypes
import os
import sys

from pinbuddy import _early, _library, _match

# As the library reads its switches.
_ON = ("1", "true", "yes", "on")


def autoload() -> None:
    """Loads the library that fits this PyTorch, which then serves pinned memory; a fork wheel has loaded its own by
    then. With a plan, has PyTorch say when CUDA is initialised.

    Never raises: PyTorch could not be imported.
    """
    try:
        why = _load()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    if why and not _silent():
        line = " ".join(why.split())
        text = (
            f"pinbuddy: warning: {line}; PyTorch's own allocator serves. Why: python -m pinbuddy doctor "
            "(see: pinbuddy explain 'own allocator serves. Why')\n"
        )
        try:
            sys.stderr.write(text)
        except Exception:
            # There is no standard error to write to.
            pass


def _load() -> str:
    """Why nothing was loaded; empty if a library was, or none should be."""
    import torch

    match = _match.of_import(torch)
    if match.form == "plug-in":
        ctypes.CDLL(str(match.library), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        # Another package's entry point may have asked before there was a library.
        _library.load.cache_clear()
    elif match.form != "fork":
        return "" if match.expected else match.why
    _early.prepare(torch)
    return ""


def _silent() -> bool:
    """Whether the user turned pinbuddy or its messages off. Files that may do so are the library's to read, and it was not loaded."""
    disabled = os.environ.get("BUDDY_DISABLE", "").strip().lower() in _ON
    return disabled or os.environ.get("BUDDY_LOG", "").strip().lower() == "off"
