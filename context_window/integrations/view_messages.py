"""`view_messages`: the framework's messages that show a view of their conversation.

1. A message that the view shows whole is the framework's own object. One that is shown in part is a copy.
2. A summary stands where the messages that it replaces stood, a digest where the first message was that it shows lines of. Neither comes
   between a call and its result.
3. If all messages between two responses were dropped, the two become one message, since providers refuse two responses in a row.
4. Ids that tie the rest of a response to its reasoning go with the reasoning.
5. The line about usage stands before the response that follows its item, or at the end.
6. Blank messages are left out, and a call without a result gets one, as in the converters (`session/providers/mended_items.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Generic, TypeVar

from session.identity import DIGEST, VIEW_MARK, is_digest
from session.items import Compaction, FunctionCallOutput, Item, Message, Reasoning, copy_with
from session.providers.additions import CLOSING, PREAMBLE, USAGE_NOTE, summary_text
from session.providers.conversation import opening_of
from session.providers.mended_items import interrupted_call_id
from session.removed import without_id
from session.session import Session
from session.units import grouping, is_answer

from ..decision.placeholders import unnamed
from .message_adapter import MessageAdapter
from .tracked_conversation import TrackedConversation

M = TypeVar("M")


def view_messages(
    adapter: MessageAdapter[M],
    tracked: TrackedConversation[M],
    view: Session,
    items: Sequence[Item],
    *,
    names_ids: bool,
    mends_whole: bool,
) -> list[M]:
    """Return the messages to send for a view."""
    if view.usage_noted_after is None and _are_same(items if mends_whole else view.items, tracked.session.items):
        return list(tracked.messages)
    index_of = {item.id: index for index, items in enumerate(tracked.items) for item in items}
    forms = {item.id: item for item in items if not _is_inserted(item)}
    insertions = _insertions(items, index_of, len(tracked.items))
    picked = _PickedMessages(adapter, tracked, view.usage_noted_after, names_ids=names_ids)
    for index in sorted({index_of[item_id] for item_id in forms if item_id in index_of}):  # a prompt outside the messages has none
        visible = [forms.get(item.id) for item in tracked.items[index]]
        has_outputs = any(isinstance(form, FunctionCallOutput) for form in visible)
        while insertions and insertions[-1][0] <= index and (not has_outputs or interrupted_call_id(insertions[-1][1])):
            picked.insert(insertions.pop()[1], index_of)
        picked.take(index, visible)
    for _, item in reversed(insertions):
        picked.insert(item, index_of)
    messages = picked.messages
    if not messages:  # all of them are blank
        return list(tracked.messages)
    if is_answer(items[-1]) and not is_answer(view.items[-1]):  # a blank message of the user was the last
        messages.append(adapter.user_message(CLOSING))
    if picked.is_usage_due and grouping(view).is_followed:
        messages.append(adapter.user_message(USAGE_NOTE))
    if (opening := opening_of(view)) is not None:
        first = next((index for index, message in enumerate(messages) if not adapter.is_system(message)), len(messages))
        line = opening if names_ids else without_id(opening)
        messages.insert(first, adapter.preamble if line == PREAMBLE else adapter.user_message(line))
    return messages


def mends_of(tracked: TrackedConversation[M], view: Session, items: Sequence[Item]) -> str:
    """Return what rule 6 changes in a view, with numbers and places, and what to do; an empty text if it changes nothing."""
    if _are_same(items, view.items):
        return ""
    index_of = {item.id: index for index, items_of in enumerate(tracked.items) for item in items_of}
    shown = {item.id for item in items}
    unanswered = [index_of[call_id] for item in items if (call_id := interrupted_call_id(item)) in index_of]
    blank = [index_of[item.id] for item in view.items if item.id not in shown and item.id in index_of]
    parts = []
    if unanswered:
        parts.append(f"{_places(unanswered, 'call')} without a result got an error as one; append the result right after the call")
    if blank:
        outcome = "left out" if shown & index_of.keys() else "sent, as there is no other"
        parts.append(f"{_places(blank, 'blank message')} {outcome}; do not append messages without content")
    return f"what providers refuse was mended: {'. '.join(parts)}" if parts else ""


def _places(indices: Sequence[int], noun: str) -> str:
    """Return a number of things and the messages that hold the first of them."""
    places = ", ".join(f"messages[{index}]" for index in indices[:3])
    return f"{len(indices):,} {noun}{'' if len(indices) == 1 else 's'} ({places}{', …' if len(indices) > 3 else ''})"


class _PickedMessages(Generic[M]):
    """The messages that show the beginning of a view.

    `is_usage_due` is True if the line about usage belongs before the next response.
    """

    def __init__(
        self, adapter: MessageAdapter[M], tracked: TrackedConversation[M], usage_noted_after: str | None, *, names_ids: bool
    ) -> None:
        """`usage_noted_after` is the id of the item that the line about usage belongs to; None if there is no such line."""
        self._adapter, self._tracked, self._usage_noted_after, self._names_ids = adapter, tracked, usage_noted_after, names_ids
        self.messages: list[M] = []
        self.is_usage_due = False
        self._taken = -1  # index of the message that was taken last
        self._has_lost_reasoning = False  # True if reasoning of its response is not in the view
        self._last_response = -1  # its index, if it is a whole response and the last one shown

    def insert(self, item: Item, index_of: Mapping[str, int]) -> None:
        """Add a summary, a digest or the output of an interrupted call. `index_of` has the index of each item's message."""
        if isinstance(item, FunctionCallOutput):
            message = self._adapter.result_message(item, self._tracked.messages[index_of[interrupted_call_id(item) or ""]])
        elif isinstance(item, Compaction):
            message = self._adapter.user_message(summary_text(item.summary))
        else:
            digest = item if self._names_ids else unnamed(copy_with(item, extra={VIEW_MARK: DIGEST}))  # its record would take 1 ms to copy
            message = self._adapter.user_message(digest.text if isinstance(digest, Message) else "")
        if message is not None:
            self.messages.append(message)
            self._last_response = -1
        self.is_usage_due = self.is_usage_due or item.id == self._usage_noted_after

    def take(self, index: int, visible: Sequence[Item | None]) -> None:
        """Add the next of the framework's messages that the view shows, whole or in part.

        `visible` has the form of each of its items that the view shows; None for an item that is not in the view.
        """
        items = self._tracked.items[index]
        is_response, is_whole = is_answer(items[0]), self._adapter.is_message_whole_response
        is_missing = any(form is None and isinstance(item, Reasoning) for item, form in zip(items, visible, strict=True))
        self._has_lost_reasoning = is_response and (is_missing or self._lost_reasoning_before(index))
        self._taken = index
        shown = self._shown(self._tracked.messages[index], items, visible)
        if shown is not None and is_response and self.is_usage_due:
            self.messages.append(self._adapter.user_message(USAGE_NOTE))
            self.is_usage_due, self._last_response = False, -1
        self.is_usage_due = self.is_usage_due or any(form is not None and form.id == self._usage_noted_after for form in visible)
        if shown is None:
            return
        if is_response and is_whole and 0 <= self._last_response < index - 1:
            self.messages[-1] = self._adapter.merge_responses(self.messages[-1], shown)
        else:
            self.messages.append(shown)
        self._last_response = index if is_response and is_whole else -1

    def _lost_reasoning_before(self, index: int) -> bool:
        """True if the response of this message has lost reasoning in messages before it."""
        for dropped in range(index - 1, self._taken, -1):
            items = self._tracked.items[dropped]
            if not is_answer(items[0]):
                return False
            # Without the item that followed it, reasoning may not be followed by another.
            if not self._adapter.is_message_whole_response or any(isinstance(item, Reasoning) for item in items):
                return True
        return self._has_lost_reasoning

    def _shown(self, message: M, items: Sequence[Item], visible: Sequence[Item | None]) -> M | None:
        """Return the message or a copy that shows less; None if nothing of it can be sent."""
        shown: M | None = message
        if not _are_same(items, visible):
            forms = visible if self._names_ids else [None if form is None else unnamed(form) for form in visible]
            shown = self._adapter.partial_copy(message, items, forms)
        return self._adapter.without_reasoning_links(shown) if self._has_lost_reasoning and shown is not None else shown


def _insertions(view: Sequence[Item], index_of: Mapping[str, int], end: int) -> list[tuple[int, Item]]:
    """Return what a view has beyond its log, the last item first, each with the index of the message that it stands before."""
    insertions: list[tuple[int, Item]] = []
    for item in reversed(view):
        if _is_inserted(item):
            insertions.append((end, item))
        else:
            end = index_of.get(item.id, end)
    return insertions


def _is_inserted(item: Item) -> bool:
    return isinstance(item, Compaction) or is_digest(item) or interrupted_call_id(item) is not None


def _are_same(first: Sequence[object], second: Sequence[object]) -> bool:
    return len(first) == len(second) and all(map(is_, first, second))
