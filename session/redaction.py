"""Shows wrong values and foreign text in messages, logs and reprs without leaking keys: any of them can be a key.

1. Numbers, True, False and None are shown as they are; an integer too long to read only by its number of bits.
2. A name or an id (`short`) is shown as it is up to `SHOWN` characters, unless it looks like a key.
3. Any other text (`veiled`) is shown by its length and its first `LETTERS` characters, any other value by its type.
4. In foreign text (`redacted`), everything that looks like a key keeps only its first `LETTERS` characters.

Nothing here can fail. `repr` can: on integers of 5,000 digits and on deep nesting. It also takes gigabytes for large data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .printable import printable
from .secret_finder import layers, secrets_in

SHOWN = 60
"""Characters of a name that a message shows."""
LETTERS = 4
"""Characters of any other text that a message shows."""

_KEY = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=\[[0-9]m)|(?<=\[[0-9]{2}m))"
    r"(?:(?:(?:sk|pk|rk|gsk|xai|pplx|hf|gh[a-z]|github_pat|glpat|xox[a-z]|AIza|AKIA|ASIA|ABSK|ya29|eyJ)[-_.]?"
    r"|nvapi-|tvly-|csk-|pcsk_|lsv2_|pypi-AgE|GOCSPX-|AQ\.|SG\.)[A-Za-z0-9][\w.~+/=-]{11,}"
    r"|[A-Za-z0-9]{30}[\w.~+/=-]*)",
    re.ASCII,
)
"""What only resembles a key: its first letters and too few or other ones after them, and any long run of letters and digits."""
_RUN_LETTERS = 36
_RUN = re.compile(rf"(?<![\w/+-])(?>(?:[a-z]+[_-])*)([\w/+-]{{{_RUN_LETTERS},}}={{0,2}})", re.ASCII)
"""A long run of key characters, after words such as `chatcmpl-` that begin an id."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CHANGES = 5
"""A run is random if inside its words its case or kind changes at least once in 5 characters. 40 random characters hold some 15
changes; names and paths only a few.
"""


def short(value: object) -> str:
    """Return a name or an id as a message may show it, in at most about 80 characters."""
    if isinstance(value, str):
        text = str.__str__(value)
        return repr(text) if is_name(text) else veiled(text)
    return veiled(value)


def is_name(text: str) -> bool:
    """True if a message may show the text as it is: at most `SHOWN` characters that do not look like a key."""
    visible = printable(text[: SHOWN + 1])
    return len(text) <= SHOWN and redacted(visible) == visible


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
    """Return a text in which everything that looks like a key is shortened: `sk-a…` for `sk-ant-api03-…`.

    A key with an invisible character in it is not recognized: remove those first, with `printable`.
    """
    return _shortened(text, {*((secret.start, secret.end) for secret in secrets_in(text)), *_resembling(text)})


def without_secrets(text: str) -> str:
    """Return a text in which keys and passwords are shortened. What only resembles one stays: a hash in a path, for example."""
    return _shortened(text, {(secret.start, secret.end) for secret in secrets_in(text)})


def _shortened(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces: list[str] = []
    shown = 0
    for start, end in sorted(spans):
        if start >= shown:
            pieces += text[shown:start], text[start : start + min(LETTERS, (end - start) // LETTERS)], "…"
        shown = max(shown, end)
    return "".join((*pieces, text[shown:]))


def _resembling(text: str) -> Iterator[tuple[int, int]]:
    for layer in layers(text):
        spans = [match.span() for match in _KEY.finditer(layer.text)]
        spans += [match.span() for match in _RUN.finditer(layer.text) if _is_random(match[1])]
        yield from ((layer.place(start), layer.place(end)) for start, end in spans)


def _is_random(run: str) -> bool:
    """True if the run, or a part of it between slashes, mixes upper case, lower case and digits as no path or name does."""
    return any(_is_mixed(part) for part in (run, *run.split("/")) if len(part) >= _RUN_LETTERS)


def _is_mixed(part: str) -> bool:
    changes = len(_WORD.findall(part)) - len(re.findall("[A-Za-z0-9]+", part))
    return changes * _CHANGES >= len(part) and all(re.search(kind, part) for kind in ("[A-Z]", "[a-z]", "[0-9]"))
