"""Decides if two items with the same id are the same item, and finds another id for one that is not.

Converters from provider formats number their items ("m0", "m1"), so two unrelated logs have equal ids. An equal id alone proves little.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from hashlib import sha256
from typing import Any, TypeVar, get_args

from .items import AgentConfigUpdate, Compaction, FunctionCall, FunctionCallOutput, Item, ItemBase, Message, parts_of_item
from .parts import Text
from .stack import with_room

AnyItem = TypeVar("AnyItem", bound=ItemBase)

VIEW_MARK = "context_window"
"""Key in `extra` under which a view records how it changed an item."""
VIEW_CHANGES = ("cleared", "extracted", "truncated", "images replaced", "parts refused")
"""Values under that key. Any other value belongs to the caller."""
EXTRACTED = VIEW_CHANGES[1]
"""The value of an item of which only some lines are left."""
PLACEHOLDER = "recall id "
"""A text in every placeholder of a view."""
VIEW_NOTE = "context_window_was"
"""Key under which a view records the item before the change."""
ORIGINAL_ID = "merged_id"
"""Key in `extra` that holds the original id of an item that got another one in a merge."""

_SHARED_FIELDS = frozenset(spec.name for spec in fields(ItemBase))
_CONTENT_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(spec.name for spec in fields(kind) if spec.name not in _SHARED_FIELDS and spec.name != "replaces")
    for kind in get_args(Item)
}
"""By type, the fields that hold the content. `Compaction.replaces` is not among them: it holds ids, and a merge may change those."""


def is_same(first: Item, second: Item) -> bool:
    """True if two items with the same id are the same item: their content is equal, whatever was recorded about them since.

    Pin, usage, category, agent and time may differ. So may the changes of a view, and the completion of a config update in a fork.
    """
    if first is second:
        return True
    if type(first) is not type(second) or _own_extra(first) != _own_extra(second):
        return False
    if isinstance(first, AgentConfigUpdate):
        return first.created_at == second.created_at and all(
            None in (a := getattr(first, name), b := getattr(second, name)) or a == b for name in ("instructions", "tools")
        )
    if _is_changed_by_view(first) or _is_changed_by_view(second):
        if isinstance(first, FunctionCallOutput) and isinstance(second, FunctionCallOutput):
            return (first.name, first.call_id, first.is_error) == (second.name, second.call_id, second.is_error)
        if isinstance(first, Message) and isinstance(second, Message):
            is_same_text = _same_except_lines if EXTRACTED in map(_change_of, (first, second)) else _same_except_changes
            return first.role == second.role and is_same_text(first, second)
        if isinstance(first, FunctionCall) and isinstance(second, FunctionCall):
            return (first.name, first.call_id) == (second.name, second.call_id)
    return all(getattr(first, name) == getattr(second, name) for name in _CONTENT_FIELDS[type(first)])


def is_pinned_twin(first: Item, second: Item) -> bool:
    """True if two items differ in nothing but the pin."""
    if type(first) is not type(second) or first.pinned == second.pinned:
        return False
    pairs = ((getattr(first, spec.name), getattr(second, spec.name)) for spec in fields(first) if spec.name != "pinned")
    return all(a is b or a == b for a, b in pairs)


def replacement_id(item: Item, is_free: Callable[[str], bool]) -> str:
    """Return an id for an item whose own id is in use. It depends on the content alone, so merging again gives the same id.

    Args:
        item: The item, with its original id.
        is_free: True if the item can have an id: no item has it, or this very item does.
    """
    bare: dict[str, Any] = {"extra": {}, "usage": None, "pinned": False, "agent_id": None, "created_at": 0.0}
    if isinstance(item, FunctionCall):
        bare["metadata"] = {}
    if isinstance(item, Compaction):
        bare["replaces"] = ()
    from .serial import item_to_dict

    content = with_room(lambda: json.dumps(item_to_dict(replace(item, **bare)), sort_keys=True))
    number = 0
    while True:
        item_id = sha256(f"{number} {content}".encode()).hexdigest()[:12]  # as long as those of `new_id`
        if is_free(item_id):
            return item_id
        number += 1


def with_id(item: AnyItem, item_id: str) -> AnyItem:
    """Return the item with this id. If the id changes, `extra` records the original one."""
    return item if item_id == item.id else replace(item, id=item_id, extra={ORIGINAL_ID: item.id, **item.extra})


def _is_changed_by_view(item: Item) -> bool:
    """True if the item has the mark of a view and contains a placeholder.

    The mark alone proves nothing: a foreign session may contain one, and two different items would then pass as the same.
    """
    if item.extra.get(VIEW_MARK) not in VIEW_CHANGES:
        return False
    texts = [item.arguments] if isinstance(item, FunctionCall) else [part.text for part in parts_of_item(item) if isinstance(part, Text)]
    return any(PLACEHOLDER in text for text in texts)


def _own_extra(item: Item) -> dict[str, Any]:
    view_keys = (VIEW_MARK, VIEW_NOTE, ORIGINAL_ID) if _is_changed_by_view(item) else (ORIGINAL_ID,)
    return {key: value for key, value in item.extra.items() if key not in view_keys}


def _change_of(item: Item) -> object:
    return item.extra.get(VIEW_MARK)


def _same_except_lines(first: Message, second: Message) -> bool:
    """True if one message has lines of the other one, in order, below its first line; or if only some lines of both are left."""
    extract, full = (first, second) if _change_of(first) == EXTRACTED else (second, first)
    if _change_of(full) == EXTRACTED:
        return True
    position = 0
    for line in extract.text.split("\n")[1:]:
        if line == "…":
            continue
        position = full.text.find(line, position) + len(line)
        if position < len(line):
            return False
    return True


def _same_except_changes(first: Message, second: Message) -> bool:
    """True if the parts are equal, except for truncated texts, and images and documents that one side has as a note."""
    return len(first.content) == len(second.content) and all(
        a == b
        or isinstance(a, Text) != isinstance(b, Text)
        or (isinstance(a, Text) and isinstance(b, Text) and _same_except_middle(a.text, b.text))
        for a, b in zip(first.content, second.content, strict=True)
    )


def _same_except_middle(first: str, second: str) -> bool:
    """True if a text is truncated and the other one begins and ends as it does."""
    if PLACEHOLDER not in first and PLACEHOLDER not in second:
        return False
    (head, tail), (other_head, other_tail) = _ends(first), _ends(second)
    return (head.startswith(other_head) or other_head.startswith(head)) and (tail.endswith(other_tail) or other_tail.endswith(tail))


def _ends(text: str) -> tuple[str, str]:
    """Return the text before and after the marker of a truncation; the whole text twice if it has none."""
    before, marker, after = text.partition(PLACEHOLDER)
    return (before.rpartition("\n[")[0], after.partition("]\n")[2]) if marker else (text, text)
