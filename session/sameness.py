"""Whether two items of one id are one item, and the id that another one gets instead.

Ids that a way back from a provider made of places ("m0", "m1") are those of any other such log too: an equal id alone says little.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from hashlib import sha256
from typing import Any, TypeVar, get_args

from .items import AgentConfigUpdate, Compaction, FunctionCall, FunctionCallOutput, Item, ItemBase, Message, parts_of_item
from .parts import Part, Text
from .stack import with_room

AnyItem = TypeVar("AnyItem", bound=ItemBase)

VIEW_MARK = "context_window"
"""The key in `extra` under which a view says what it did to an item."""
VIEW_CHANGES = ("cleared", "truncated", "images replaced", "parts refused")
"""The values under that key. Any other value is the caller's own."""
PLACEHOLDER = "recall id "
"""A text that every placeholder of a view holds."""
VIEW_NOTE = "context_window_was"
"""The key under which it says what the item was before."""
ORIGINAL_ID = "merged_id"
"""The key in `extra` under which an item that got another id in a merge has the one that it had."""

_OF_ALL = frozenset(one.name for one in fields(ItemBase))
_SAID: dict[type, tuple[str, ...]] = {
    kind: tuple(one.name for one in fields(kind) if one.name not in _OF_ALL and one.name != "replaces") for kind in get_args(Item)
}
"""By type, the fields that hold what the item says. What a compaction replaces are ids, which may have become others."""


def is_same(one: Item, other: Item) -> bool:
    """Whether two items that have one id are the same item: they say the same, whatever has been noted about them since.

    Noted are pin, usage, category, agent and time. What a view did to an item makes no other of it, nor that a fork's config
    update holds what earlier ones left in force.
    """
    if one is other:
        return True
    if type(one) is not type(other) or _own_extra(one) != _own_extra(other):
        return False
    if isinstance(one, AgentConfigUpdate):
        return one.created_at == other.created_at and all(
            None in (mine := getattr(one, name), theirs := getattr(other, name)) or mine == theirs for name in ("instructions", "tools")
        )
    if _is_changed_by_view(one) or _is_changed_by_view(other):
        if isinstance(one, FunctionCallOutput) and isinstance(other, FunctionCallOutput):
            return (one.name, one.call_id, one.is_error) == (other.name, other.call_id, other.is_error)
        if isinstance(one, Message) and isinstance(other, Message):
            return one.role == other.role and _same_but_media(one.content, other.content)
    return all(getattr(one, name) == getattr(other, name) for name in _SAID[type(one)])


def other_id(item: Item, is_free: Callable[[str], bool]) -> str:
    """An id for an item whose own is another's here: the same one whenever it is asked for, so that it is known again.

    Args:
        item: The item, under the id that it had.
        is_free: Whether the item can have this id, because none has it, or this very item.
    """
    bare: dict[str, Any] = {"extra": {}, "usage": None, "pinned": False, "agent_id": None, "created_at": 0.0}
    if isinstance(item, FunctionCall):
        bare["metadata"] = {}
    if isinstance(item, Compaction):
        bare["replaces"] = ()
    from .serial import item_to_dict

    said = with_room(lambda: json.dumps(item_to_dict(replace(item, **bare)), sort_keys=True))
    number = 0
    while True:
        found = sha256(f"{number} {said}".encode()).hexdigest()[:12]  # as long as `new_id` makes them
        if is_free(found):
            return found
        number += 1


def under(item: AnyItem, item_id: str) -> AnyItem:
    """The item under this id; where it had another one, that is noted."""
    return item if item_id == item.id else replace(item, id=item_id, extra={ORIGINAL_ID: item.id, **item.extra})


def _is_changed_by_view(item: Item) -> bool:
    """True if the item is marked as one that a view changed and holds a placeholder.

    A mark alone proves nothing: a session from elsewhere may carry one, and two different items would then pass as one.
    """
    return item.extra.get(VIEW_MARK) in VIEW_CHANGES and any(
        isinstance(part, Text) and PLACEHOLDER in part.text for part in parts_of_item(item)
    )


def _own_extra(item: Item) -> dict[str, Any]:
    ours = (VIEW_MARK, VIEW_NOTE, ORIGINAL_ID) if _is_changed_by_view(item) else (ORIGINAL_ID,)
    return {key: value for key, value in item.extra.items() if key not in ours}


def _same_but_media(ones: tuple[Part, ...], others: tuple[Part, ...]) -> bool:
    """True if the parts are the same, except for images and documents that one side has as a note."""
    return len(ones) == len(others) and all(
        one == other or isinstance(one, Text) != isinstance(other, Text) for one, other in zip(ones, others, strict=True)
    )
