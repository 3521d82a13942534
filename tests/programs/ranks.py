"""Two ranks with activations in pinned memory and a pinned DataLoader, by examples/ddp.py. Started by torchrun; each reports."""

import contextlib
import io
import sys

from case import report, scaled

FULL = "--layers=4 --width=512 --tokens=512 --vocabulary=4000 --steps=6 --batch=4"
SMALL = "--layers=2 --width=128 --tokens=256 --vocabulary=1000 --steps=3"

if __name__ == "__main__":
    import ddp

    sys.argv = ["ddp.py", "--backend=gloo", *scaled(FULL, SMALL).split()]
    with contextlib.redirect_stdout(io.StringIO()):
        ddp.main()
    report({})
