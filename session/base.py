"""What every item of a session has, whatever it is. The items themselves live in `items.py`."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, ClassVar, cast

from .door import check, clean_object, clean_text
from .errors import FormatError, short
from .usage import Usage


class MessageCategory(Enum):
    """What an item is to the model, in falling priority: the last is trimmed first."""

    SYSTEM = "SYSTEM"
    CONTEXT = "CONTEXT"
    DIALOG = "DIALOG"
    SYSTEM_OUTPUT = "SYSTEM_OUTPUT"


def new_id() -> str:
    """A fresh item id of 12 hexadecimal digits: short, because placeholders spell it out to the model."""
    return os.urandom(6).hex()


_DERIVED = cast(MessageCategory, None)


_set = object.__setattr__
"""How a frozen value is given its final form while it is made."""


class _Memo:
    """Room on an item for one object of whoever measures it (see `context_window.counting.memo`).

    It is no part of the item's value: not compared, shown, copied or saved. Kept here, it goes when the item goes.
    """

    __slots__ = ("memo",)

    memo: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBase(_Memo):
    """What every item has.

    Attributes:
        id: Unique in its session.
        created_at: Unix seconds.
        agent_id: The agent it belongs to, where there are several.
        category: Its kind for budgets; derived from role and type unless given.
        pinned: True if it must survive every trim.
        usage: What the provider reported for the request whose answer this item begins.
        extra: What else a transcript or a voice stack brings: JSON values, copied, and to be read only. A plain `dict`,
            so that every encoder and debugger knows it; to change it, make another item with `dataclasses.replace`.
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
            raise FormatError(f"{type(self).__name__}.id", "an empty text; leave `id` out to have one made")
        if type(self.created_at) is not float or not math.isfinite(self.created_at):
            _set(self, "created_at", _seconds(self.created_at, f"{type(self).__name__}.created_at"))
        if self.agent_id is not None:
            clean_text(self, "agent_id")
        if self.category is _DERIVED:
            _set(self, "category", self._default_category())
        else:
            check(self, "category", MessageCategory)
        if self.pinned is not False:
            check(self, "pinned", bool)
        if self.usage is not None:
            check(self, "usage", Usage)
        clean_object(self, "extra")

    def __reduce__(self) -> tuple[Callable[..., object], tuple[Any, ...]]:
        # What dataclasses with slots do by themselves would leave `memo` unset.
        return _revived, (type(self), tuple((one.name, getattr(self, one.name)) for one in fields(self)))

    def _default_category(self) -> MessageCategory:
        return MessageCategory.DIALOG


def _revived(kind: type[ItemBase], values: tuple[tuple[str, object], ...]) -> ItemBase:
    """A copied or unpickled item: its values were cleaned when the first one was made."""
    item = kind.__new__(kind)
    for name, value in (*values, ("memo", None)):
        _set(item, name, value)
    return item


def _seconds(value: object, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except OverflowError:
            seconds = math.inf
        if math.isfinite(seconds):
            return seconds
    raise FormatError(where, f"{short(value)} is not a number of seconds")
