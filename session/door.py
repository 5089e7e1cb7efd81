"""What every value passes on its way into a log: texts cleaned, types checked, so that no later encode or save can fail.

Nothing here knows of items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from .errors import FormatError

JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"

MAX_DEPTH = 100
"""Levels of nesting that carried data may have; Python's own JSON encoder fails near a thousand."""


def clean(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD; surrogate pairs become the character they stand for."""
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
        depth: The nesting this value is already at.

    Raises:
        FormatError: Where a value is of another kind, or lies deeper than `MAX_DEPTH`.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise FormatError(where, f"{value} is not a JSON number")
    if depth >= MAX_DEPTH:
        raise FormatError(where, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        copied = {}
        for key, member in value.items():
            if not isinstance(key, str):
                raise FormatError(where, f"the key {key!r} is not a text")
            copied[clean(key)] = clean_json(member, f"{where}.{clean(key)}", depth + 1)
        return copied
    if isinstance(value, list | tuple):
        return [clean_json(member, f"{where}[{place}]", depth + 1) for place, member in enumerate(value)]
    raise FormatError(where, f"a {type(value).__name__} cannot be saved as JSON; pass texts, numbers, lists and mappings")


def clean_text(value: object, name: str, *, optional: bool = False) -> None:
    text = getattr(value, name)
    if text is None and optional:
        return
    if not isinstance(text, str):
        raise FormatError(f"{type(value).__name__}.{name}", f"{short(text)} is not a text")
    if not text.isascii():
        object.__setattr__(value, name, clean(text))


def check(value: object, name: str, kind: type, *, optional: bool = False) -> None:
    found = getattr(value, name)
    if (found is None and optional) or (isinstance(found, kind) and (kind is not int or not isinstance(found, bool))):
        return
    raise FormatError(f"{type(value).__name__}.{name}", f"{short(found)} is not of type {kind.__name__}")


def check_choice(value: object, name: str, choices: tuple[str, ...], *, optional: bool = False) -> None:
    found = getattr(value, name)
    if not (found is None and optional) and found not in choices:
        raise FormatError(f"{type(value).__name__}.{name}", f"{short(found)} is none of {', '.join(choices)}")


def short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
