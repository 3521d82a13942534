"""Every call that a program makes fails in turn: pinbuddy ends, loses and says nothing that stock does not.

What differs is listed with its reason in `faults/differences.txt`; a line that is no longer true fails as well. By
default the commonest faults in two programs. All of it, which takes some forty minutes of two cores:

    PINBUDDY_TEST_SWEEP=all cargo xtask sim -- PYTHON -m pytest -n 2 test_faults.py
"""

import os
from dataclasses import replace

import figures
import pytest
from conftest import interpreter
from faults import cases, listed, runs, sweep
from faults.programs import PROGRAMS
from plugin import IS_PLUGIN
from release import from_minor

ALL = os.environ.get("PINBUDDY_TEST_SWEEP") == "all"
MOST = 12 if ALL else 1
# Which call is the n-th one is decided by threads: later ones say nothing new.
MOST_OF = {"threads": 4}
KINDS = cases.KINDS if ALL else ("once", "stays")
# A program has up to half a thousand calls that can fail: as many tests share them, on as many cores.
PARTS = 4 if ALL else 1

pytestmark = [
    pytest.mark.skipif(not from_minor(15), reason="what differs from stock is listed for torch 2.15"),
    # A fork wheel's torch is imported anew each time.
    pytest.mark.skipif(not IS_PLUGIN, reason="programs are forked, which needs the plug-in"),
    pytest.mark.simulated("calls fail"),
]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("program", [name for name, (_, _, quick) in PROGRAMS.items() if ALL or quick])
def test_each_call_fails_in_turn(program, part):
    pythons, most, only = map(interpreter, ("fork", "stock")), min(MOST, MOST_OF.get(program, MOST)), None if ALL else cases.COMMONEST
    swept = sweep.sweep(*pythons, program, most, KINDS, only, (part, PARTS))
    found, tried = swept.differences, swept.tried
    unlisted, stale = listed.against_the_list(found, tried)
    figures.write({
        "call sites failed": len(tried), "survived": len(tried) - len({it.case for it in found}),
        "as stock where it fails in another step": len(swept.elsewhere), "differences, listed": len(found) - len(unlisted),
    })
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
    outcome = runs.run(interpreter("fork"), "serve", f"open:1+=<{file}")
    assert outcome.injected > 0 and outcome.findings() == {}, (outcome.findings(), outcome.stderr)


def test_a_case_is_of_cuda_or_of_the_kernel():
    calls = {"cudaMalloc": 1, "cuMemCreate": 1, "cudaGetDevice": 9, "madvise": 1, "rename": 1, "open(/proc/meminfo)": 5}
    every = [it.plan for it in cases.cases("serve", cases.with_all(calls), 2)]
    of = lambda name: [it.removeprefix(f"{name}:") for it in every if it.startswith(f"{name}:")]
    assert of("cudaMalloc") == of("cuMemCreate") == ["1=2", "1+=2", "1=700"]
    assert of("madvise") == ["1+=12", "1+=4", "1+=1", "1=12", "1=4"]
    assert of("rename") == ["1+=12", "1+=1", "1=12"]
    assert of("open(/proc/meminfo)") == ["1+=12", "1+=1", "2+=12", "2+=1"]
    # Eleven calls to CUDA: the driver is gone in the first half and in the second.
    assert of("*") == ["3+=4", "9+=4"]
    quick = [it.plan for it in cases.cases("serve", calls, 1, ("once", "stays"))]
    assert "madvise:1+=12" in quick and "cuMemCreate:1=700" in quick and len(quick) == 9


def test_a_line_that_is_not_true_is_found(tmp_path, monkeypatch):
    case = cases.Case("serve", "cudaFreeHost", 1, "once")
    difference = listed.Difference(case, "clear", "AcceleratorError: CUDA error: unknown error")
    file = tmp_path / "differences.txt"
    monkeypatch.setattr(listed, "DIFFERENCES", file)
    file.write_text("# a comment\n\nserve; cudaFreeHost:1; once; clear; AcceleratorError = a reason\n")
    assert listed.against_the_list([difference], {case}) == ([], [])
    # Later calls of the same name are the same difference; what was not tried is not stale.
    later = replace(difference, case=replace(case, call=2))
    assert listed.against_the_list([difference, later], {case, later.case}) == ([], [])
    assert listed.against_the_list([], set()) == ([], [])
    assert listed.against_the_list([], {case}) == ([], file.read_text().splitlines()[2:])
    # A pattern speaks of each program, and each has to show it.
    file.write_text("serv*; cudaFreeHost:1; once; clear; AcceleratorError = a reason\n")
    assert listed.against_the_list([difference], {case}) == ([], [])
    more = replace(case, program="serve, on a node")
    assert listed.against_the_list([difference], {case, more}) == ([], file.read_text().splitlines())
    unlike = replace(difference, case=replace(case, program="streams"))
    assert listed.against_the_list([difference, unlike], {case}) == ([unlike], [])
    other = replace(difference, name="copy")
    assert listed.against_the_list([difference, other], {case}) == ([other], [])
    file.write_text("serve; cudaFreeHost:1; once; clear; AcceleratorError =\n")
    with pytest.raises(ValueError, match="reason"):
        listed.against_the_list([], set())
