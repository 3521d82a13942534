"""The plug-in's way into PyTorch: the ``torch.backends`` entry point, which ``import torch`` calls.

Invariant: whatever is wrong, torch is imported all the same, and one line says so.
"""

import ctypes
import os
import sys

from pinbuddy import _match

# As the library reads its own switches.
_ON = ("1", "true", "yes", "on")


def autoload() -> None:
    """Loads the library that fits this PyTorch; by being loaded it takes over pinned memory.

    Does nothing in a fork wheel, which has its own. Never raises: PyTorch would not be imported.
    """
    try:
        why = _load()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    if why and not _silent():
        line = " ".join(why.split())
        text = f"pinbuddy: warning: {line}; PyTorch's own allocator serves. Why: python -m pinbuddy doctor\n"
        try:
            sys.stderr.write(text)
        except Exception:
            # Without a standard error nobody can be told.
            pass


def _load() -> str:
    """Why nothing was loaded; empty where something was, or where nothing should be."""
    import torch

    match = _match.of_import(torch)
    if match.form == "plug-in":
        ctypes.CDLL(str(match.library), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        return ""
    return "" if match.form == "fork" or match.expected else match.why


def _silent() -> bool:
    """Whether somebody asked for PyTorch's own allocator, or not to be told."""
    disabled = os.environ.get("BUDDY_DISABLE", "").strip().lower() in _ON
    return disabled or os.environ.get("BUDDY_LOG", "").strip().lower() == "off"
