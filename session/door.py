"""What every value passes on its way into a log: texts cleaned, types checked, so that no later encode or save can fail.

Nothing here knows of items.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from typing import Any, TypeAlias

from .errors import SHOWN, FormatError, short

JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"

MAX_DEPTH = 100
"""Levels of nesting that carried data may have; Python's own JSON encoder fails near a thousand."""
MAX_VALUES = 1_000_000
"""Values that one piece of carried data may have: lists that share their members are small in memory and endless in JSON."""
MAX_BITS = 2_126
"""Bits of an integer: 640 digits, which Python writes and reads whatever `sys.set_int_max_str_digits` was set to."""
MAX_COUNT = 2**63 - 1
"""For what is counted. Larger numbers are damage, and fail later, in the first division."""


def clean(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD; surrogate pairs become the character they stand for.

    It is a plain `str`: a subclass could change under us, or escape what it is joined with.
    """
    if type(text) is not str:
        text = str.__str__(text)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: object, where: str, depth: int = 0) -> Any:
    """A private copy of JSON-like data, its texts cleaned.

    Args:
        value: None, booleans, finite numbers, texts, and lists and mappings of them.
        where: The name of the value, for the error.
        depth: Levels of the carried data that the value lies in.

    Raises:
        FormatError: A value is of another kind, too large, or lies too deep; two keys are one once cleaned.
    """
    try:
        return _Copying().copied(value, depth)
    except _Refused as refused:
        raise FormatError(where + "".join(reversed(refused.path)), refused.problem) from None


class _Refused(Exception):  # noqa: N818 - never seen outside
    """Some value cannot be carried. `path` grows from the inside out, so that places cost nothing until one is needed."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.path: list[str] = []


class _Copying:
    """One walk over carried data."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_VALUES

    def copied(self, value: object, depth: int) -> JsonValue:
        if isinstance(value, str):
            return clean(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            if value.bit_length() > MAX_BITS:
                raise _Refused(f"{short(value)} is too large to be saved as JSON; pass it as a text")
            return int(value)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise _Refused(f"{value} is not a JSON number")
            return float(value)
        if depth >= MAX_DEPTH:
            raise _Refused(f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict | Mapping):
            self._take(len(value))
            return self._mapping(value, depth + 1)
        if isinstance(value, list | tuple):
            self._take(len(value))
            return self._list(value, depth + 1)
        raise _Refused(f"{short(value)} cannot be saved as JSON; pass texts, numbers, lists and mappings")

    def _mapping(self, value: Mapping[Any, object], depth: int) -> dict[str, JsonValue]:
        copied: dict[str, JsonValue] = {}
        key: object = None
        try:
            for key, member in value.items():
                copied[_new_key(key, copied)] = self.copied(member, depth)
        except _Refused as refused:
            refused.path.append(f".{place_name(key)}")
            raise
        return copied

    def _list(self, value: Iterable[object], depth: int) -> list[JsonValue]:
        copied: list[JsonValue] = []
        try:
            for member in value:
                copied.append(self.copied(member, depth))  # noqa: PERF401 - its length is the place of what is refused
        except _Refused as refused:
            refused.path.append(f"[{len(copied)}]")
            raise
        return copied

    def _take(self, values: int) -> None:
        self.left -= values
        if self.left < 0:
            raise _Refused(f"more than {MAX_VALUES:,} values")


def _new_key(key: object, taken: Container[str]) -> str:
    if not isinstance(key, str):
        raise _Refused("the key is not a text")
    name = clean(key)
    if name in taken:
        raise _Refused("two keys are the same once lone surrogates are replaced")
    return name


def place_name(key: object) -> str:
    """A key as the `where` of an error shows it."""
    return clean(key) if isinstance(key, str) and len(key) <= SHOWN else short(key)


# Of one field of a frozen value that is being made


def clean_text(value: object, name: str, *, optional: bool = False) -> None:
    """Puts a text in its clean form.

    Raises:
        FormatError: It is no text.
    """
    text = getattr(value, name)
    if (type(text) is str and text.isascii()) or (optional and text is None):
        return
    if not isinstance(text, str):
        raise FormatError(_place(value, name), f"{short(text)} is not a text")
    object.__setattr__(value, name, clean(text))


def clean_texts(value: object, name: str) -> None:
    """Puts several texts in their clean form, as a tuple.

    Raises:
        FormatError: They are not several, or one is no text.
    """
    found = getattr(value, name)
    if isinstance(found, str | Mapping) or not isinstance(found, Iterable):
        raise FormatError(_place(value, name), f"{short(found)} where a list of texts is expected")
    texts = tuple(found)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise FormatError(f"{_place(value, name)}[{place}]", f"{short(text)} is not a text")
    object.__setattr__(value, name, tuple(map(clean, texts)))


def clean_object(value: object, name: str) -> None:
    """Puts a private copy in place of a mapping, as `clean_json` makes it.

    Raises:
        FormatError: It is no mapping; or as `clean_json`.
    """
    found = getattr(value, name)
    if type(found) is dict and not found:
        object.__setattr__(value, name, {})
        return
    if not isinstance(found, Mapping):
        raise FormatError(_place(value, name), f"{short(found)} where a mapping is expected")
    object.__setattr__(value, name, clean_json(found, _place(value, name)))


def check(value: object, name: str, kind: type, *, optional: bool = False) -> None:
    """Refuses what is not of this type.

    Raises:
        FormatError: It is not.
    """
    found = getattr(value, name)
    if not (isinstance(found, kind) or (optional and found is None)):
        raise FormatError(_place(value, name), f"{short(found)} is not of type {kind.__name__}")


def check_count(value: object, name: str, lowest: int, highest: int, unit: str, *, optional: bool = False) -> None:
    """Refuses what is not an integer from `lowest` to `highest`.

    Raises:
        FormatError: It is not.
    """
    found = getattr(value, name)
    if optional and found is None:
        return
    if not isinstance(found, int) or isinstance(found, bool):
        raise FormatError(_place(value, name), f"{short(found)} is not a whole number of {unit}")
    if not lowest <= found <= highest:
        raise FormatError(_place(value, name), f"{short(found)} {unit}; pass a number from {lowest} to {highest:,}")
    if type(found) is not int:
        object.__setattr__(value, name, int(found))


def check_choice(value: object, name: str, choices: tuple[str, ...], *, optional: bool = False) -> None:
    """Refuses what is none of these texts.

    Raises:
        FormatError: It is none.
    """
    found = getattr(value, name)
    if type(found) is str and found in choices:
        return
    if isinstance(found, str) and clean(found) in choices:  # an enum's member that is a text
        object.__setattr__(value, name, clean(found))
    elif not (optional and found is None):
        raise FormatError(_place(value, name), f"{short(found)} is none of {', '.join(choices)}")


def _place(value: object, name: str) -> str:
    return f"{type(value).__name__}.{name}"
