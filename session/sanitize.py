"""Cleans texts and checks types before a value enters a log, so that no later encoding or save can fail. Knows nothing of items."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from .errors import FormatError, short
from .redaction import is_name
from .stack import with_room

JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"

MAX_DEPTH = 100
"""Levels of nesting in JSON data. Python's own JSON encoder fails near a thousand."""
MAX_VALUES = 1_000_000
"""Values in one piece of JSON data. Lists that share their members are small in memory and endless in JSON."""
MAX_BITS = 2_126
"""Bits of an integer: 640 digits, which Python reads and writes under any setting of `sys.set_int_max_str_digits`."""
MAX_COUNT = 2**63 - 1
"""Limit for counts. Larger numbers are damage, and fail later, in the first division."""


def clean(text: str) -> str:
    """Return the text with lone surrogates replaced by U+FFFD and surrogate pairs by their character.

    The result is a plain `str`: a subclass could change later, or escape the texts that it is joined with.
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
    """Return a private copy of JSON data, its texts cleaned. Deep data takes no more of the stack than flat data.

    Args:
        value: None, booleans, finite numbers, texts, and lists and mappings of them.
        where: The name of the value, for the error.
        depth: Levels of nesting around the value.
        encode: Converts bytes to a text; None if bytes are not allowed.

    Raises:
        FormatError: A value has another type, is too large, or is nested too deeply; or two keys become equal when cleaned.
    """
    levels: list[_Level] = []
    try:
        return _copied(value, levels, MAX_DEPTH - depth, encode)
    except _Refused as refused:
        raise FormatError(where + "".join(level.step for level in levels), refused.problem) from None


class _Refused(Exception):  # noqa: N818 - never seen outside
    """A value that JSON data cannot hold."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


class _Level:
    """A list or a mapping that is being copied, with its members that are not copied yet, and the key of the one that is."""

    __slots__ = ("copy", "key", "members")

    def __init__(self, value: Mapping[Any, object] | Iterable[object]) -> None:
        is_mapping = isinstance(value, dict | Mapping)
        self.members: Iterator[Any] = iter(value.items() if isinstance(value, dict | Mapping) else value)
        self.copy: dict[str, JsonValue] | list[JsonValue] = {} if is_mapping else []
        self.key: object = NONE

    @property
    def step(self) -> str:
        """The member that is being copied, in the notation of `FormatError.where`."""
        if self.key is NONE:
            return ""
        return f".{place_name(self.key)}" if isinstance(self.copy, dict) else f"[{self.key}]"


NONE = object()
"""Sentinel: no key yet."""
_CONTAINERS = (dict, list, tuple, Mapping)  # in this order: the check for Mapping is the slowest


def _copied(value: object, levels: list[_Level], max_levels: int, encode: Callable[[bytes], str] | None) -> JsonValue:
    """Return the copy. If a value is refused, `levels` holds the path to it."""
    budget = MAX_VALUES
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
            budget -= len(value)
            if budget < 0:
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


def _new_key(key: object, existing: Container[str]) -> str:
    if not isinstance(key, str):
        raise _Refused("the key is not a text")
    name = clean(key)
    if name in existing:
        raise _Refused("two keys are the same once lone surrogates are replaced")
    return name


def place_name(key: object) -> str:
    """Return a key in the notation of `FormatError.where`."""
    return clean(key) if isinstance(key, str) and key and is_name(key) else short(key)


# Fields of a frozen value, during its construction


def clean_text(value: object, name: str, *, optional: bool = False) -> None:
    """Replace a text field by its clean form. Raises FormatError if it is not a text."""
    text = getattr(value, name)
    if (type(text) is str and text.isascii()) or (optional and text is None):
        return
    if not isinstance(text, str):
        raise FormatError(_place(value, name), f"{short(text)} is not a text; pass a str")
    object.__setattr__(value, name, clean(text))


def clean_texts(value: object, name: str) -> None:
    """Replace a field of several texts by a tuple of their clean forms. Raises FormatError if it is not a list of texts."""
    field = getattr(value, name)
    if isinstance(field, str | Mapping) or not isinstance(field, Iterable):
        raise FormatError(_place(value, name), f"expected a list of texts, got {short(field)}")
    texts = tuple(field)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise FormatError(f"{_place(value, name)}[{index}]", f"{short(text)} is not a text")
    object.__setattr__(value, name, tuple(map(clean, texts)))


def clean_object(value: object, name: str) -> None:
    """Replace a mapping by the private copy that `clean_json` makes. Raises FormatError if it is none, or as `clean_json`."""
    field = getattr(value, name)
    if type(field) is dict and not field:
        object.__setattr__(value, name, {})
        return
    if not isinstance(field, Mapping):
        raise FormatError(_place(value, name), f"expected a mapping, got {short(field)}")
    object.__setattr__(value, name, clean_json(field, _place(value, name)))


def check(value: object, name: str, kind: type, *, optional: bool = False) -> None:
    """Raise FormatError unless a field has this type."""
    field = getattr(value, name)
    if not (isinstance(field, kind) or (optional and field is None)):
        raise FormatError(_place(value, name), f"{short(field)} is not of type {kind.__name__}")


def check_count(value: object, name: str, lowest: int, highest: int, unit: str, *, optional: bool = False) -> None:
    """Raise FormatError unless a field is an integer from `lowest` to `highest`."""
    field = getattr(value, name)
    if optional and field is None:
        return
    if not isinstance(field, int) or isinstance(field, bool):
        raise FormatError(_place(value, name), f"{short(field)} is not a whole number of {unit}")
    if not lowest <= field <= highest:
        raise FormatError(_place(value, name), f"{short(field)} {unit}; pass a number from {lowest} to {highest:,}")
    if type(field) is not int:
        object.__setattr__(value, name, int(field))


def check_choice(
    value: object, name: str, choices: tuple[str, ...], *, optional: bool = False, advice: Mapping[str, str] | None = None
) -> None:
    """Raise FormatError unless a field is one of these texts. `advice` says what to do instead, by a wrong text that is to be expected."""
    field = getattr(value, name)
    if type(field) is str and field in choices:
        return
    if isinstance(field, str) and clean(field) in choices:  # a member of a str enum
        object.__setattr__(value, name, clean(field))
    elif not (optional and field is None):
        remedy = (advice or {}).get(field) if isinstance(field, str) else None
        raise FormatError(_place(value, name), f"{short(field)} is none of {', '.join(choices)}{f'; {remedy}' if remedy else ''}")


def _place(value: object, name: str) -> str:
    return f"{type(value).__name__}.{name}"


def json_text(value: object, where: str) -> str:
    """Return the value as JSON. Raises FormatError if JSON cannot hold it, or it is nested too deeply."""
    data = clean_json(value, where)
    return with_room(lambda: json.dumps(data, ensure_ascii=False))
