"""The text of a proposal to PyTorch, for `upstream_pr.py`: PR_BODY.md with a table of a benchmark.

Invariant: every result in it is of a run of the tests or of a file of results.
"""

import hashlib
import json
from pathlib import Path

ROOT = Path(__file__).parent.parent
# The name of each figure with what it is relative to, and its place in the file of results.
FIGURES = {
    "allocate + free, 8 MiB, time, over stock's": "hit_pair_ratio/8MiB",
    "allocate + free, 64 KiB, time, over stock's": "hit_pair_ratio/64KiB",
    "the same, used on a stream, 8 MiB, over stock's": "hit_pair_ratio/event",
    "eight threads, throughput, over stock's": "threads_ratio/8",
    "first iteration, times faster, over stock": "first_iteration_speedup/background",
    "pinned, sizes that vary: stock, over largest live set": "pinned_over_requested/stock/variable-lengths",
    "pinned, sizes that vary: subclass, over largest live set": "pinned_over_requested/pinbuddy-exact/variable-lengths",
    "pinned, 129.5 MiB x 40: stock, over largest live set": "pinned_over_requested/stock/fixed-129.5mib",
    "pinned, 129.5 MiB x 40: subclass, over largest live set": "pinned_over_requested/pinbuddy-exact/fixed-129.5mib",
}


class Refusal(Exception):
    def __init__(self, what: str, found: str = "", expected: str = "", todo: str = ""):
        parts = {"found": found, "expected": expected, "to do": todo}
        lines = [f"  {label:<10}" + text.strip().replace("\n", "\n" + " " * 12) for label, text in parts.items() if text]
        super().__init__("\n".join([what, *lines]))


def benchmark(file: Path) -> str:
    """The table, with where it was measured. A figure is in the file, and its spread if the file has one."""
    def inside(path):
        value = results
        for key in path.split("/"):
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def refusal(found):
        return Refusal(f"{file} has no results of a benchmark", found, "a file that `cargo xtask bench --json FILE` wrote", "pass another one with --bench")

    try:
        results = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise refusal(str(error)) from None
    rows = ""
    for name, path in FIGURES.items():
        if (value := inside(path)) is not None:
            spread = inside(f"context/spread/{path}")
            try:
                rows += f"| {name} | {value:.2f}{' ({:.2f} to {:.2f})'.format(*spread) if spread else ''} |\n"
            except (TypeError, ValueError, IndexError):
                raise refusal(f"{path}: {value!r}, with the spread {spread!r}") from None
    if not rows:
        raise refusal("none of the figures of the table")
    where = {it: inside(f"context/{it}") for it in ("date", "processor", "cores", "memory_mib", "cuda", "fork")}
    if unknown := [name for name, value in where.items() if value is None]:
        raise refusal(f"no {', '.join(unknown)} in its context")
    where = "Measured on {date}: {processor}, {cores} cores, {memory_mib} MiB, CUDA {cuda}, torch {fork};".format(**where)
    return (
        f"{where} in turns on the same requests in one run, medians (least to most). Ratios are the result; times are of one "
        f"machine.\n\n| | |\n|---|---|\n{rows}"
    )


def tested(file: Path, proposed: list[Path]) -> str | None:
    """What `tests/upstream/test_seam.py` has kept, if it is of these patches."""
    hashes = {it.name: hashlib.sha256(it.read_bytes()).hexdigest() for it in proposed}
    try:
        kept = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    match kept:
        case {"patches": patches, "on": str(where), "results": [_, *_] as results} if patches == hashes and all(isinstance(it, str) for it in results):
            return (
                "Run without a build of the tree: the tests compiled against an official wheel's headers with this change, and linked with "
                f"its libraries ({where}; the simulator is a CUDA runtime with real streams and page-locked memory and no GPU).\n\n"
            ) + "".join(f"- {it}\n" for it in results)
    return None


def description(kind: str, messages: list, results: str, table: str, form: bytes | None) -> str:
    """PR_BODY.md, in the form that PyTorch's pull requests have."""
    form = "\n".join(it for it in (form or b"").decode(errors="replace").splitlines() if not it.startswith("Fixes #")).strip()
    parts = {
        "{commits}\n": "".join(f"**{subject}**\n\n{body}\n\n" for subject, body in messages),
        "{tested}\n": results + "\n",
        "{benchmark}\n": table + "\n",
        "{form}\n": f"\n{form}\n" if form else "",
    }
    text = (ROOT / f"patches/upstream/{kind}.md").read_text()
    for name, part in parts.items():
        text = text.replace(name, part)
    return text
