"""`repaired_log`: a log of JSON lines without what a provider refuses by itself: images and documents that cannot be read, blank texts.

An assistant that goes on with such a log sends the part again with every request, and is refused each time. Calls and results are left
alone: assistants complete them when they resume.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from session.errors import SessionError
from session.json_strings import json_value
from session.providers import Violation, validate_anthropic

from .repair import REFUSED

_CHECKED = ("image", "document", "text")
_RULES = frozenset(("A6", "A8"))
"""Rules about blank texts, and about images and documents."""
FORM_RULE = "A0"
"""Broken by what only looks like a block of a message."""


class RepairedLine(NamedTuple):
    """A line of a log, and what was wrong with it. One without a fault is the same, byte for byte."""

    content: bytes
    faults: list[str]


def repaired_log(lines: Iterable[bytes]) -> Iterator[RepairedLine]:
    """Yield the lines of a log, with their ends, mended. Raises ValueError if a line is no JSON."""
    for line in lines:
        faults: list[str] = []
        value = _mended(json_value(line), faults) if line.strip() else None
        end = line[len(line.rstrip(b"\r\n")) :]
        mended = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass") + end if faults else line
        yield RepairedLine(mended, faults)


def _mended(value: Any, faults: list[str]) -> Any:
    if isinstance(value, dict):
        return {name: _mended(member, faults) for name, member in value.items()}
    if not isinstance(value, list):
        return value
    kept: list[Any] = []
    for member in value:
        problems = _problems_of(member)
        faults += [problem.message for problem in problems]
        if not problems:
            kept.append(_mended(member, faults))
        elif member["type"] != "text":
            kept.append({"type": "text", "text": REFUSED})
    return kept or value


def _problems_of(block: Any) -> list[Violation]:
    """Return what the provider would say to a block by itself; nothing of values that are no blocks of content."""
    if not isinstance(block, dict) or block.get("type") not in _CHECKED:
        return []
    try:
        found = validate_anthropic({"messages": [{"role": "user", "content": [block]}]})
    except SessionError:
        return []
    return [] if FORM_RULE in {violation.rule for violation in found} else [each for each in found if each.rule in _RULES]
