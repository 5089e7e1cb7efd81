"""`ItemBase`: the fields that all items share. The items themselves live in `items.py`."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cache
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast

from .errors import FormatError, short
from .sanitize import check, clean_object, clean_text
from .usage import Usage


class MessageCategory(Enum):
    """Kind of an item for the budget, in falling priority: the last one is trimmed first. Items also take its name: `"CONTEXT"`."""

    SYSTEM = "SYSTEM"
    CONTEXT = "CONTEXT"
    DIALOG = "DIALOG"
    SYSTEM_OUTPUT = "SYSTEM_OUTPUT"


CategoryName: TypeAlias = Literal["SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT"]


def category_of(name: object, where: str) -> MessageCategory:
    """Return the category with this name.

    Raises:
        FormatError: None has it.
    """
    category = next((member for member in MessageCategory if isinstance(name, str) and member.value == name), None)
    if category is None:  # not `MessageCategory(name)`: its error would show the value, however deep it is
        raise FormatError(where, f"{short(name)} is none of {', '.join(member.value for member in MessageCategory)}")
    return category


def new_id() -> str:
    """Return a new item id of 12 hexadecimal digits: short, because placeholders show it to the model."""
    return os.urandom(6).hex()


_DERIVED = cast(MessageCategory, None)


Setter: TypeAlias = Callable[[object, object], None]
ItemT = TypeVar("ItemT", bound="ItemBase")

_set = object.__setattr__
"""Sets a field of a frozen value while it is constructed."""


class _Memo:
    """A slot on each item for one object of the code that measures it (see `context_window.counting.item_tokens`).

    It is not part of the item's value: not compared, shown, copied or saved. It is garbage-collected with the item.
    """

    __slots__ = ("memo",)

    memo: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBase(_Memo):
    """Fields that every item has.

    Attributes:
        id: Unique in its session.
        created_at: Unix seconds.
        agent_id: The agent it belongs to, if there are several.
        category: Its kind for budgets; by default it follows from role and type.
        pinned: True if every trim must keep it.
        usage: Usage reported for the request whose response begins with this item.
        extra: Further data of a transcript or a voice stack: JSON values, copied, read-only. A plain `dict`, which every encoder and
            debugger knows; to change it, make another item with `dataclasses.replace`.
    """

    type: ClassVar[str]

    id: str = field(default_factory=new_id)
    created_at: float = field(default_factory=time.time)
    agent_id: str | None = None
    category: MessageCategory = _DERIVED
    pinned: bool = False
    usage: Usage | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _set(self, "memo", None)
        clean_text(self, "id")
        if not self.id:
            raise FormatError(f"{type(self).__name__}.id", "empty; leave `id` out to get a new one")
        if type(self.created_at) is not float or not math.isfinite(self.created_at):
            _set(self, "created_at", _seconds(self.created_at, f"{type(self).__name__}.created_at"))
        if self.agent_id is not None:
            clean_text(self, "agent_id")
        if self.category is _DERIVED:
            _set(self, "category", self._default_category())
        elif not isinstance(self.category, MessageCategory):
            _set(self, "category", category_of(self.category, f"{type(self).__name__}.category"))
        if self.pinned is not False:
            check(self, "pinned", bool)
        if self.usage is not None:
            check(self, "usage", Usage)
        clean_object(self, "extra")

    def __reduce__(self) -> tuple[Callable[..., object], tuple[Any, ...]]:
        # The default for dataclasses with slots would leave `memo` unset.
        return _restored, (type(self), tuple((spec.name, getattr(self, spec.name)) for spec in fields(self)))

    def _default_category(self) -> MessageCategory:
        return MessageCategory.DIALOG


def _restored(kind: type[ItemBase], values: tuple[tuple[str, object], ...]) -> ItemBase:
    """Return a copied or unpickled item. Its values were cleaned when the original was made."""
    item = kind.__new__(kind)
    for name, value in (*values, ("memo", None)):
        _set(item, name, value)
    return item


def copy_with(item: ItemT, **values: object) -> ItemT:
    """Return a copy of an item with other values in some fields.

    `dataclasses.replace` cleans and checks every field again, which takes ten times as long. Here the new values must be clean: they are
    parts of clean ones, or texts that the caller has made.
    """
    copied = object.__new__(type(item))
    kind: object = type(item)
    for name, set_field in field_setters(kind).items():
        set_field(copied, values[name] if name in values else getattr(item, name))
    MEMO(copied, None)
    return copied


@cache
def field_setters(kind: object) -> dict[str, Setter]:
    """Return the functions that set the fields of a frozen class while a value is built, by name. They take half the time of `_set`."""
    return {spec.name: getattr(kind, spec.name).__set__ for spec in fields(cast("type[ItemBase]", kind))}


MEMO: Setter = getattr(_Memo, "memo").__set__  # noqa: B009 - its type is that of the slot, not of the value
"""Sets the slot `memo`, which is no field."""


def _seconds(value: object, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except OverflowError:
            seconds = math.inf
        if math.isfinite(seconds):
            return seconds
    raise FormatError(where, f"{short(value)} is not a number of seconds")
