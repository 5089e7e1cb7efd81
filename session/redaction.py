"""How a value that is wrong, or what somebody else wrote, may stand in a message, a log or a repr: any of it can be a key.

1. A figure, True, False and None stand as they are; an integer too long to read, by its bits.
2. A name or an id (`short`) stands as it is up to `SHOWN` characters, unless it looks like a key.
3. Any other text (`veiled`) is told by its length and its first `LETTERS` characters, any other value by its type.
4. In the words of others (`redacted`), whatever looks like a key keeps its first `LETTERS` characters.

Nothing here fails: `repr` does on integers of 5,000 digits and on deep nesting, and takes gigabytes for large data.
"""

from __future__ import annotations

import re

SHOWN = 60
"""Characters of a name that a message repeats."""
LETTERS = 4
"""Characters of any other text."""

_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk|gsk|xai|pplx|hf|gh[a-z]|github_pat|glpat|xox[a-z]|AIza|AKIA|ASIA|ya29|eyJ)[-_.]?[A-Za-z0-9][\w.~+/=-]{11,}"
    r"|[A-Za-z0-9]{30}[\w.~+/=-]*)",
    re.ASCII,
)
"""The beginnings that providers give their keys, and any long run of letters and digits."""


def short(value: object) -> str:
    """Return a name or an id as a message may show it, in at most some 80 characters."""
    if isinstance(value, str):
        text = str.__str__(value)
        return repr(text) if is_name(text) else veiled(text)
    return veiled(value)


def is_name(text: str) -> bool:
    """True if the text may stand in a message as it is: at most `SHOWN` characters that do not look like a key."""
    return len(text) <= SHOWN and not _KEY.search(text)


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
    """Return a text without what looks like a key: `sk-a…` for `sk-ant-api03-…`."""
    return _KEY.sub(lambda match: f"{match[0][:LETTERS]}…", text)
