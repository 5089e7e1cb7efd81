"""The terms of a text: what a model may need again word for word. Shares nothing with any strategy.

A term is a path, a compound identifier or a hash, a number of at least three digits, or a whole line of at least 28 characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning

LINE_TERM = 28
"""Characters from which a whole line is a term."""
LINE_TERM_MOST = 400
"""Characters from which it is none: nobody quotes such lines whole, and data in one line is not a line."""
QUOTED_LINE = 8
"""Characters from which a line can be recognized in an edit."""
PIECE = 80
"""Characters from which a part of a line longer than `LINE_TERM_MOST` counts as a line."""

_WORD = re.compile(r"[A-Za-z0-9_~/.][\w~@./:+-]*", re.ASCII)
_LINE_NUMBER = re.compile(r"\d+[→\t|:]\s*")
_PLACE_IN_FILE = re.compile(r"(?::\d+)+$")
_ENDINGS = (
    "c|cc|cfg|conf|cpp|cs|css|csv|go|h|hpp|html|ini|java|js|json|jsonl|jsx|kt|lock|log|lua|md|mjs|php|pl|png|proto|py|pyi|rb|rs|rst|scala"
    "|sh|sql|svg|swift|tf|toml|ts|tsx|txt|vue|xml|yaml|yml|zig"
)
_FILE = re.compile(rf"[\w@+~-][\w.@+~-]*\.(?:{_ENDINGS})", re.ASCII | re.IGNORECASE)
_HASH = re.compile(r"[0-9a-f]{8,}")
_COMPOUND = re.compile(r"[A-Za-z0-9][_.:-]+[A-Za-z0-9]|[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]|\w_|_\w", re.ASCII)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a text.

    Attributes:
        paths: Names of files and folders, and addresses.
        identifiers: Compound identifiers and hashes.
        numbers: Numbers of at least three digits, also versions and dates.
        lines: Whole lines, without the spaces around them and the number in front.
    """

    paths: frozenset[str] = frozenset()
    identifiers: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()


def terms_of(text: str) -> Terms:
    """Return the terms of a text."""
    paths, identifiers, numbers = set(), set(), set()
    for match in _WORD.finditer(text):
        word = _PLACE_IN_FILE.sub("", match[0].rstrip(".:/-+@"))
        word = word.removeprefix("./").lstrip(".") if not word.startswith("..") else word
        if len(word) < 3:
            continue
        if not any(character.isalpha() for character in word):
            if sum(character.isdigit() for character in word) >= 3 and "/" not in word:
                numbers.add(word)
        elif ("/" in word.strip("/") and len(word) >= 5) or _FILE.fullmatch(word):
            paths.add(word)
        elif len(word) >= 5 and (_COMPOUND.search(word) or _HASH.fullmatch(word)):
            identifiers.add(word)
    lines = frozenset(line for line in lines_of(text) if LINE_TERM <= len(line) <= LINE_TERM_MOST)
    return Terms(frozenset(paths), frozenset(identifiers), frozenset(numbers), lines)


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines that can be recognized: without the spaces around them and the number in front, and with a letter in them."""
    for line in text.splitlines():
        plain = plain_line(line)
        if len(plain) >= QUOTED_LINE and any(character.isalpha() for character in plain):
            yield plain


def plain_line(line: str) -> str:
    """Return a line without the spaces around it and without the line number that a tool put in front."""
    line = line.strip()
    number = _LINE_NUMBER.match(line) if line[:1].isdigit() else None
    return line[number.end() :] if number else line


def text_of(item: Item) -> str:
    """Return what a model reads of an item. Of a call: the tool's name, and each string among the arguments as it is, not as JSON."""
    if isinstance(item, FunctionCall):
        return "\n".join((item.name, *strings_in(item.arguments)))
    if isinstance(item, Message | FunctionCallOutput | Reasoning):
        return item.text
    return item.summary if isinstance(item, Compaction) else ""


def strings_in(arguments: str) -> list[str]:
    """Return the string values in a JSON text, in order; the text itself if it is no JSON."""
    return list(_strings(parsed(arguments)))


def parsed(arguments: str) -> Any:
    """Return the value of a JSON text; the text itself if it is no JSON."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key in value:
            yield from _strings(value[key])
    elif isinstance(value, list):
        for element in value:
            yield from _strings(element)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
