"""What a program of GoogleTest's has said so far, by its lines: one that crashes writes no report."""

import re

WORDS = {"RUN": "crashed", "OK": "passed", "SKIPPED": "skipped", "FAILED": "failed"}


def words_of(output: str) -> dict[str, str]:
    """How each test ended; one that started and did not end has crashed."""
    lines = re.findall(r"^\[ +(RUN|OK|SKIPPED|FAILED) +\] (\w+\.\w+)", output, re.MULTILINE)
    return {name: WORDS[tag] for tag, name in lines}
