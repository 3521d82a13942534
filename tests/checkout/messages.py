"""Messages and docs/troubleshooting.md: each heading there quotes a message, and each message leads to a heading.

A heading quotes a part of the message that has no number in it, or several with an ellipsis between. The library's log points to
`pinbuddy explain` by itself. Other messages have a pointer of their own, which quotes a heading.
"""

import re
from collections.abc import Iterator

from rules import Files, lines, own

PAGE = "docs/troubleshooting.md"
SOURCES = ("cxx-bridge/src/", "cxx-bridge/config/", "cxx-bridge/cpp/", "cxx-bridge/python/", "tools/src/")
# How the library warns.
WARNS = re.compile(r"log::warn\(|self\.once\(|warnings\.push\(")
# How others speak, and how far the text of a call goes.
POINTED = [("TORCH_WARN(", ");"), ("TORCH_WARN_ONCE(", ");"), ("\nreport(", ");"), ("raise RuntimeError(", "\n\n"), ("raise ValueError(", "\n\n")]
POINTER = "pinbuddy explain '"


def joined(text: str) -> str:
    """A source in which texts that go on in the next line are one: Rust's after a backslash, C++'s after a quotation mark."""
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", text)
    return re.sub(r'\\\n|"\n"', "", text)


def warnings(text: str) -> Iterator[str]:
    """The first text of each call that warns."""
    for call in WARNS.finditer(text):
        rest = text[call.start() :].split("\n}")[0]
        if found := re.search(r'"([^"]*)"', rest):
            yield found[1]


def quotes(heading: str, text: str) -> bool:
    return all(part in text for part in heading.split(" … "))


def messages(files: Files) -> Iterator[str]:
    said = {path: joined(text) for path, text in files.items() if path.startswith(SOURCES)}
    numbered = {}
    for number, line in lines(files.get(PAGE, "")):
        if heading := re.fullmatch("### `(.*)`", line):
            numbered[heading[1]] = number
    for heading, number in numbered.items():
        if not any(quotes(heading, text) for text in said.values()):
            yield f"{PAGE}:{number}: nothing says {heading!r}"
    for path, text in said.items():
        text = own(text)
        for warning in warnings(text):
            if " " in warning and not any(quotes(heading, warning) for heading in numbered):
                yield f"{PAGE}: no heading quotes what {path} says: {warning!r}"
        for start, end in POINTED:
            for rest in text.split(start)[1:]:
                call = rest.split(end)[0]
                # A declaration has no text.
                if '"' in call and POINTER not in call:
                    yield f"{path}: no pointer to `pinbuddy explain` in {start + call.splitlines()[0]!r}"
        for pointer in re.findall(POINTER + "([^']*)'", text):
            if "{" not in pointer and pointer not in numbered:
                yield f"{path}: {PAGE} has no heading {pointer!r} to point to"
