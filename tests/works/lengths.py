"""Activations of sequences of many lengths, by examples/offload.py: no step has the sizes of the one before."""

import contextlib
import io
import sys

import work


def program() -> None:
    import offload

    sys.argv = ["offload.py", "--layers=4", "--steps=4"] if work.SMALL else ["offload.py", "--steps=10", "--layers=16"]
    with contextlib.redirect_stdout(io.StringIO()):
        offload.main()


if __name__ == "__main__":
    work.run(program)
