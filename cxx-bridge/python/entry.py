"""The entry point for PyTorch, ``torch.backends``, which ``import torch`` calls: ``pinbuddy/_entry.py`` in the plug-in,
``torch/_pinbuddy.py`` in a fork. The package is in both, and pip removes it with either.

Invariant: torch can be imported without the package, and one line says how to mend it.
"""

import contextlib
import sys


def autoload() -> None:
    """Has the package load what fits. Never raises: PyTorch could not be imported."""
    try:
        from pinbuddy import _plugin
    except Exception as error:
        wheel = "torch-*pinbuddy*.whl" if __name__.startswith("torch.") else "pinbuddy-*.whl"
        # Standard error may be closed.
        with contextlib.suppress(Exception):
            sys.stderr.write(
                f"pinbuddy: warning: the Python package pinbuddy, expected in {sys.prefix}, cannot be imported ({error}), as after the "
                f"fork or the plug-in beside it was uninstalled. To mend it: pip install --force-reinstall --no-deps {wheel}\n"
            )
    else:
        _plugin.autoload()
