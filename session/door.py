"""What every value passes on its way into a log: texts cleaned, types checked, so that no later encode or save can fail.

Nothing here knows of items.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from .errors import FormatError, short
from .redaction import is_name

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


def clean_json(value: object, where: str, depth: int = 0, *, encode: Callable[[bytes], str] | None = None) -> Any:
    """A private copy of JSON-like data, its texts cleaned. It takes no more of the stack for deep data than for flat.

    Args:
        value: None, booleans, finite numbers, texts, and lists and mappings of them.
        where: The name of the value, for the error.
        depth: Levels of the carried data that the value lies in.
        encode: What makes a text of bytes; None where there may be no bytes.

    Raises:
        FormatError: A value is of another kind, too large, or lies too deep; two keys are one once cleaned.
    """
    levels: list[_Level] = []
    try:
        return _copied(value, levels, MAX_DEPTH - depth, encode)
    except _Refused as refused:
        raise FormatError(where + "".join(level.place for level in levels), refused.problem) from None


class _Refused(Exception):  # noqa: N818 - never seen outside
    """Some value cannot be carried."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


class _Level:
    """A list or a mapping that is being copied.

    Attributes:
        members: Those that are not copied yet.
        copy: The copy so far.
        key: The key of the member that is being copied.
    """

    __slots__ = ("copy", "key", "members")

    def __init__(self, value: Mapping[Any, object] | Iterable[object]) -> None:
        is_mapping = isinstance(value, dict | Mapping)
        self.members: Iterator[Any] = iter(value.items() if isinstance(value, dict | Mapping) else value)
        self.copy: dict[str, JsonValue] | list[JsonValue] = {} if is_mapping else []
        self.key: object = NONE

    @property
    def place(self) -> str:
        """The member that is being copied, as the `where` of an error shows it."""
        if self.key is NONE:
            return ""
        return f".{place_name(self.key)}" if isinstance(self.copy, dict) else f"[{self.key}]"


NONE = object()
"""No key yet."""
_CONTAINERS = (dict, list, tuple, Mapping)  # in this order: to ask for a Mapping takes longest


def _copied(value: object, levels: list[_Level], max_levels: int, encode: Callable[[bytes], str] | None) -> JsonValue:
    """Return the copy. Where a value is refused, `levels` holds the way to it."""
    left = MAX_VALUES
    root: list[JsonValue] = []
    name = ""
    while True:
        into: dict[str, JsonValue] | list[JsonValue] = levels[-1].copy if levels else root
        copy: JsonValue
        if isinstance(value, str):
            copy = clean(value)
        elif isinstance(value, _CONTAINERS):
            if len(levels) >= max_levels:
                raise _Refused(f"nested deeper than {MAX_DEPTH} levels")
            left -= len(value)
            if left < 0:
                raise _Refused(f"more than {MAX_VALUES:,} values")
            level = _Level(value)
            copy = level.copy
            levels.append(level)
        else:
            copy = _leaf(value, encode)
        if isinstance(into, dict):
            into[name] = copy
        else:
            into.append(copy)
        while levels:  # the next value
            level = levels[-1]
            if isinstance(level.copy, dict):
                pair = next(level.members, None)
                if pair is not None:
                    level.key, value = pair
                    name = _new_key(level.key, level.copy)
                    break
            else:
                value = next(level.members, NONE)
                if value is not NONE:
                    level.key = len(level.copy)
                    break
            levels.pop()
        else:
            return root[0]


def _leaf(value: object, encode: Callable[[bytes], str] | None) -> JsonValue:
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
    if encode is not None and isinstance(value, bytes):
        return encode(value)
    raise _Refused(f"{short(value)} cannot be saved as JSON; pass texts, numbers, lists and mappings")


def _new_key(key: object, taken: Container[str]) -> str:
    if not isinstance(key, str):
        raise _Refused("the key is not a text")
    name = clean(key)
    if name in taken:
        raise _Refused("two keys are the same once lone surrogates are replaced")
    return name


def place_name(key: object) -> str:
    """A key as the `where` of an error shows it."""
    return clean(key) if isinstance(key, str) and is_name(key) else short(key)


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
