"""Decides if two items with the same id are the same item.

Converters from provider formats number their items ("m0", "m1"), so two unrelated logs have equal ids. An equal id alone proves little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar, get_args

from .items import AgentConfigUpdate, FunctionCall, FunctionCallOutput, Item, ItemBase, Message, parts_of_item
from .parts import Text

AnyItem = TypeVar("AnyItem", bound=ItemBase)

VIEW_MARK = "context_window"
"""Key in `extra` under which a view records how it changed an item."""
VIEW_CHANGES = ("cleared", "truncated", "images replaced", "parts refused", "digest")
"""Values under that key. Any other value belongs to the caller."""
DIGEST = VIEW_CHANGES[4]
"""The value of a digest: a message in the user's voice with lines of earlier items. It has the id of the first of them."""
PLACEHOLDER = "recall id "
"""A text in every placeholder of a view."""
VIEW_RECORD = "context_window_was"
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
    if is_digest(first) or is_digest(second):
        return _is_digest_of(first, second) if is_digest(first) else _is_digest_of(second, first)
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
            return first.role == second.role and _same_except_changes(first, second)
        if isinstance(first, FunctionCall) and isinstance(second, FunctionCall):
            return (first.name, first.call_id) == (second.name, second.call_id)
    return all(getattr(first, name) == getattr(second, name) for name in _CONTENT_FIELDS[type(first)])


def is_digest(item: Item) -> bool:
    """True if the item is a digest: in the user's voice, but not the user's message."""
    return bool(item.extra) and item.extra.get(VIEW_MARK) == DIGEST and isinstance(item, Message) and item.role == "user"


def digest_record(items: Sequence[Item]) -> list[dict[str, str]]:
    """Return what a digest records of its items under `VIEW_RECORD`: type and id of each, and the tool and call id of calls and outputs."""
    return [
        {"type": item.type, "id": item.id}
        | ({"name": item.name, "call_id": item.call_id} if isinstance(item, FunctionCall | FunctionCallOutput) else {})
        for item in items
    ]


def digested(digest: Item) -> list[Mapping[str, object]]:
    """Return what a digest records of its items. It may come from a file: anything else there is left out."""
    record = digest.extra.get(VIEW_RECORD)
    return [entry for entry in record if isinstance(entry, Mapping)] if isinstance(record, Sequence) and not isinstance(record, str) else []


def with_id(item: AnyItem, item_id: str) -> AnyItem:
    """Return the item with this id. If the id changes, `extra` records the original one."""
    return item if item_id == item.id else replace(item, id=item_id, extra={ORIGINAL_ID: item.id, **item.extra})


def _is_digest_of(digest: Item, item: Item) -> bool:
    """True if the digest says that its first item is this one; for two digests, if their first items are the same."""
    if is_digest(item):
        return digested(digest)[:1] == digested(item)[:1]
    return _is_changed_by_view(digest) and digested(digest)[:1] == digest_record([item])


def _is_changed_by_view(item: Item) -> bool:
    """True if the item has the mark of a view and contains a placeholder.

    The mark alone proves nothing: a foreign session may contain one, and two different items would then pass as the same.
    """
    if item.extra.get(VIEW_MARK) not in VIEW_CHANGES:
        return False
    texts = [item.arguments] if isinstance(item, FunctionCall) else [part.text for part in parts_of_item(item) if isinstance(part, Text)]
    return any(PLACEHOLDER in text for text in texts)


def _own_extra(item: Item) -> dict[str, Any]:
    view_keys = (VIEW_MARK, VIEW_RECORD, ORIGINAL_ID) if _is_changed_by_view(item) else (ORIGINAL_ID,)
    return {key: value for key, value in item.extra.items() if key not in view_keys}


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
