"""What stands in front of PyTorch's device allocator passes every call on: none that this torch has is left to its default."""

import re
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.checkout("reads the library's sources")

INCLUDE = Path(torch.__file__).parent / "include/c10"
SOURCES = Path(__file__).parents[2] / "cxx-bridge/cpp/device"
# The classes that CUDA's allocator is, and where they are.
CLASSES = {
    "CUDAAllocator": "cuda/CUDACachingAllocator.h",
    "DeviceAllocator": "core/CachingDeviceAllocator.h",
    "Allocator": "core/Allocator.h",
}


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)


def functions(body: str, which: str):
    """``(name, number of parameters)`` of what ``which`` finds the beginning of; the last bracket of a match opens the parameters."""
    for found in re.finditer(which, body):
        depth, end = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(body[end], 0)
            end += 1
        inside = body[found.end() : end - 1]
        # Commas within angle, round and curly brackets are no parameter's end.
        while (plain := re.sub(r"<[^<>]*>|\([^()]*\)|\{[^{}]*\}", "", inside)) != inside:
            inside = plain
        yield found["name"], len([it for it in inside.split(",") if it.strip()])


def virtual(name: str) -> set[tuple[str, int]]:
    """The virtual functions that a class has of its own, but for its destructor."""
    text = without_comments((INCLUDE / CLASSES[name]).read_text())
    found = re.search(rf"\b(?:class|struct)\s+(?:C10_\w+\s+)?{name}\b[^;{{]*{{(.*?)^}};", text, re.S | re.M)
    assert found, f"{CLASSES[name]} has no {name}"
    return set(functions(found[1], r"virtual\s[^;{}()~]*?(?P<name>\w+)\s*\("))


def forwarded() -> set[tuple[str, int]]:
    """What forwarding.h passes on with as many parameters, and what others override."""
    names = set(functions(without_comments((SOURCES / "forwarding.h").read_text()), r"\bPASS(?:_IF)?\(\s*(?:[^()]*, )?(?P<name>\w+),\s*\("))
    for file in [*SOURCES.glob("*.h"), *SOURCES.glob("*.cpp")]:
        names.update(functions(without_comments(file.read_text()), r"\b(?P<name>\w+)\((?=[^{};]*\) (?:const )?override \{)"))
    return names


def test_every_virtual_function_of_the_allocator_is_passed_on():
    all_virtual = {name: virtual(name) for name in CLASSES}
    # What they are known to have: that the headers were understood.
    assert ("raw_alloc", 1) in all_virtual["CUDAAllocator"] and len(all_virtual["CUDAAllocator"]) > 30
    assert ("beginAllocateToPool", 3) in all_virtual["CUDAAllocator"]
    assert ("getDeviceStats", 1) in all_virtual["DeviceAllocator"]
    assert ("copy_data", 3) in all_virtual["Allocator"]
    missing = set().union(*all_virtual.values()) - forwarded()
    assert not missing, f"cpp/device leaves these of torch {torch.__version__} to their defaults: {sorted(missing)}"
