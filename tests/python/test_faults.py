"""Every call that a program makes fails in turn: pinbuddy ends, loses and says nothing that stock does not.

What differs is listed with its reason in `faults/differences.txt`; a line that is no longer true fails as well. By
default the commonest faults in two programs. All of it, which takes half an hour:

    PINBUDDY_TEST_SWEEP=all cargo xtask sim -- PYTHON -m pytest -n 2 test_faults.py
"""

import os
from dataclasses import replace

import figures
import pytest
from conftest import interpreter
from faults import sweep
from faults.programs import PROGRAMS
from plugin import IS_PLUGIN
from release import from_minor

ALL = os.environ.get("PINBUDDY_TEST_SWEEP") == "all"
MOST = 12 if ALL else 1
# Which call is the n-th one is decided by threads: later ones say nothing new.
MOST_OF = {"threads": 4}
KINDS = sweep.KINDS if ALL else ("once", "stays")
# A program has up to half a thousand calls that can fail: as many tests share them, on as many cores.
PARTS = 4 if ALL else 1

pytestmark = [
    pytest.mark.skipif(not from_minor(15), reason="what differs from stock is listed for torch 2.15"),
    # A fork wheel's torch is imported anew each time.
    pytest.mark.skipif(not IS_PLUGIN, reason="programs are forked, which needs the plug-in"),
    pytest.mark.skipif(os.environ.get("PINBUDDY_TEST_REAL") == "1", reason="only the simulator can do this"),
]


def programs() -> list[str]:
    return [name for name, (_, _, quick) in PROGRAMS.items() if ALL or quick]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("program", programs())
def test_each_call_fails_in_turn(program, part):
    only = None if ALL else sweep.COMMONEST
    found, tried = sweep.sweep(
        interpreter("fork"), interpreter("stock"), program, min(MOST, MOST_OF.get(program, MOST)), KINDS, only, (part, PARTS)
    )
    unlisted, stale = sweep.against_the_list(found, tried)
    survived = len(tried) - len({it.case for it in found})
    figures.write({"call sites failed": len(tried), "survived": survived, "differences, listed": len(found) - len(unlisted)})
    assert not unlisted, "not in differences.txt:\n" + "\n".join(map(str, unlisted))
    assert not stale, "in differences.txt, and no longer so:\n" + "\n".join(stale)


# What the kernel would never say, in place of all that is read from it.
ABSURD = {
    "nothing": b"",
    "no text": bytes(range(256)) * 40,
    "a line without an end": b"9" * 300_000,
    "more than a number holds": b"MemAvailable: 99999999999999999999999 kB\nMemTotal: 99999999999999999999999 kB\n",
    "less than nothing": b"MemAvailable: -1 kB\nMemTotal: -1 kB\nMax locked memory -1 -1 bytes\n",
    "all is gone": b"MemAvailable: 0 kB\nMemTotal: 0 kB\nMax locked memory 0 0 bytes\n0\n",
}


@pytest.mark.parametrize("content", ABSURD)
def test_files_of_the_kernel_with_absurd_content(content, tmp_path):
    """Each request is served, from the engine's memory or PyTorch's."""
    (file := tmp_path / "file").write_bytes(ABSURD[content])
    outcome = sweep.run(interpreter("fork"), "serve", f"open:1+=<{file}")
    assert outcome.injected > 0 and outcome.findings() == {}, (outcome.findings(), outcome.stderr)


def test_a_line_that_is_not_true_is_found(tmp_path, monkeypatch):
    case = sweep.Case("serve", "cudaFreeHost", 1, "once")
    difference = sweep.Difference(case, "clear", "AcceleratorError: CUDA error: unknown error")
    listed = tmp_path / "differences.txt"
    monkeypatch.setattr(sweep, "DIFFERENCES", listed)
    listed.write_text("# a comment\n\nserve; cudaFreeHost:1; once; clear; AcceleratorError = a reason\n")
    assert sweep.against_the_list([difference], {case}) == ([], [])
    # Later calls of the same name are the same difference; what was not tried is not stale.
    later = replace(difference, case=replace(case, call=2))
    assert sweep.against_the_list([difference, later], {case, later.case}) == ([], [])
    assert sweep.against_the_list([], set()) == ([], [])
    assert sweep.against_the_list([], {case}) == ([], listed.read_text().splitlines()[2:])
    # A pattern speaks of each program, and each has to show it.
    listed.write_text("serv*; cudaFreeHost:1; once; clear; AcceleratorError = a reason\n")
    assert sweep.against_the_list([difference], {case}) == ([], [])
    more = replace(case, program="serve, in pieces")
    assert sweep.against_the_list([difference], {case, more}) == ([], listed.read_text().splitlines())
    unlike = replace(difference, case=replace(case, program="streams"))
    assert sweep.against_the_list([difference, unlike], {case}) == ([unlike], [])
    other = replace(difference, name="copy")
    assert sweep.against_the_list([difference, other], {case}) == ([other], [])
    listed.write_text("serve; cudaFreeHost:1; once; clear; AcceleratorError =\n")
    with pytest.raises(ValueError, match="reason"):
        sweep.against_the_list([], set())
