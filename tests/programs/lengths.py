"""Activations of sequences of many lengths, by examples/offload.py: no step has the sizes of the one before."""

import contextlib
import io
import sys

from case import main, scaled


def run(words: list[str]) -> None:
    import offload

    sys.argv = ["offload.py", "--loading=0", *words]
    with contextlib.redirect_stdout(io.StringIO()):
        offload.main()


if __name__ == "__main__":
    main(run, words=scaled(["--steps=10", "--layers=16"], ["--layers=4", "--steps=4"]))
