"""How a value that is wrong, or what somebody else wrote, may stand in a message, a log or a repr: any of it can be a key.

1. A figure, True, False and None stand as they are; an integer too long to read, by its bits.
2. A name or an id (`short`) stands as it is up to `SHOWN` characters, unless it looks like a key.
3. Any other text (`veiled`) is told by its length and its first `LETTERS` characters, any other value by its type.
4. In the words of others (`redacted`), whatever looks like a key keeps its first `LETTERS` characters.

Nothing here fails: `repr` does on integers of 5,000 digits and on deep nesting, and takes gigabytes for large data.
"""

from __future__ import annotations

import re

from .printable import printable

SHOWN = 60
"""Characters of a name that a message repeats."""
LETTERS = 4
"""Characters of any other text."""

_KEY = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=%25[0-9A-Fa-f]{2})|(?<=\\[abfnrtv0])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    r"|(?<=\[[0-9]m)|(?<=\[[0-9]{2}m))"
    r"(?:(?:(?:sk|pk|rk|gsk|xai|pplx|hf|gh[a-z]|github_pat|glpat|xox[a-z]|AIza|AKIA|ASIA|ABSK|ya29|eyJ)[-_.]?"
    r"|nvapi-|tvly-|csk-|pcsk_|lsv2_|pypi-AgE|GOCSPX-|AQ\.|SG\.)[A-Za-z0-9][\w.~+/=-]{11,}"
    r"|[A-Za-z0-9]{30}[\w.~+/=-]*)"
    r"|sk-ant-[a-z]{2,9}[0-9]{2}-[\w.~+/=-]{8,}",
    re.ASCII,
)
"""The beginnings that providers give their keys, and any long run of letters and digits.

A beginning may follow an escape (`%20`, `\\n`, `\\u0022`) or what is left of a terminal's colour (`[31m`), though they end in a letter or a
digit. The beginning of Anthropic's keys is like nothing else, and may follow anything.
"""
_RUN_LETTERS = 36
_RUN = re.compile(rf"(?<![\w/+-])(?>(?:[a-z]+[_-])*)([\w/+-]{{{_RUN_LETTERS},}}={{0,2}})", re.ASCII)
"""A long run of the characters of a key, after words such as `chatcmpl-` that begin an id."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CHANGES = 5
"""A run is random if its case or kind changes, inside its words, once in so many characters: 40 characters hold some 15 changes, and names
and paths only a few.
"""


def short(value: object) -> str:
    """Return a name or an id as a message may show it, in at most some 80 characters."""
    if isinstance(value, str):
        text = str.__str__(value)
        return repr(text) if is_name(text) else veiled(text)
    return veiled(value)


def is_name(text: str) -> bool:
    """True if the text may stand in a message as it is: at most `SHOWN` characters that do not look like a key."""
    shown = printable(text[: SHOWN + 1])
    return len(text) <= SHOWN and redacted(shown) == shown


def veiled(value: object) -> str:
    """Return any value as a message may show it: `a text of 108 characters that begins with 'sk-a'`, `a value of type list`."""
    if isinstance(value, str):
        text = str.__str__(value)
        if len(text) <= LETTERS:
            return repr(text)
        return f"a text of {len(text):,} characters that begins with {text[:LETTERS]!r}"
    if isinstance(value, int) and value.bit_length() > 3 * SHOWN:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"a value of type {type(value).__name__}"


def redacted(text: str) -> str:
    """Return a text without what looks like a key: `sk-a…` for `sk-ant-api03-…`.

    A key is recognised only if no invisible character stands in it: remove those first, with `printable`.
    """
    text = _RUN.sub(lambda match: _cut(match) if _is_random(match[1]) else match[0], text)
    return _KEY.sub(_cut, text)


def _cut(match: re.Match[str]) -> str:
    return f"{match[0][:LETTERS]}…"


def _is_random(run: str) -> bool:
    """True if the run, or what stands between two slashes of it, mixes upper case, lower case and digits as no path or name does."""
    return any(_is_mixed(part) for part in (run, *run.split("/")) if len(part) >= _RUN_LETTERS)


def _is_mixed(part: str) -> bool:
    changes = len(_WORD.findall(part)) - len(re.findall("[A-Za-z0-9]+", part))
    return changes * _CHANGES >= len(part) and all(re.search(kind, part) for kind in ("[A-Z]", "[a-z]", "[0-9]"))
