"""Pick the framework's messages that show a view of their conversation.

1. A message that the view shows whole is the framework's own object. One that is shown in part is a copy, made once and then reused.
   A summary stands where the messages that it replaces stood, a digest where the first message was that it shows lines of.
2. The list of a view's items only grows; after any other change it is another list. So the next view with this list shows the
   messages of the last one, and more. What was picked is kept with the conversation, and the list's `conversions_of` tells whether it is
   the same list: only new messages are looked at.
3. A framework may pass other objects with the same content at every request. So the places of whole messages are kept, and the messages
   that were shown only serve as long as the framework's are the same objects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from operator import is_
from typing import Generic, TypeAlias, TypeVar, cast

from session.common_start import common_start
from session.identity import is_digest
from session.items import Compaction, FunctionCallOutput, Item, Message, Reasoning
from session.providers.additions import PREAMBLE, USAGE_NOTE, summary_text
from session.providers.conversation import opening_of
from session.removed import without_id
from session.session import Session
from session.session_log import conversions_of
from session.units import grouping, is_answer

from ..trimming.placeholders import unnamed
from .message_adapter import MessageAdapter
from .tracked_conversation import NOTHING_PICKED, PartialCopy, TrackedConversation

M = TypeVar("M")

Entry: TypeAlias = int | list[tuple[int, "Entry[M]"]] | Callable[[], M]
"""The place of a whole message; responses that are merged into one message, each with its place; or what returns the message."""


def view_messages(adapter: MessageAdapter[M], tracked: TrackedConversation[M], view: Session) -> list[M]:
    """Return the messages to send for a view.

    Args:
        adapter: The framework's adapter.
        tracked: The conversation. New copies are stored in it.
        view: A view of its session.
    """
    if view is tracked.session:
        return list(tracked.messages)
    conversions = conversions_of(view)
    of_list, picked = tracked.picked
    tracked.picked = NOTHING_PICKED  # if this fails halfway, nobody goes on with it
    if of_list is not conversions or not isinstance(picked, PickedMessages) or not picked.can_continue(tracked, view):
        picked = PickedMessages(adapter, tracked, view.usage_noted_after)
    messages = picked.messages(view)
    tracked.picked = (conversions, picked)
    if (opening := opening_of(view)) is not None:
        place = next((place for place, message in enumerate(messages) if not adapter.is_system(message)), len(messages))
        messages.insert(place, _opening_message(adapter, tracked, opening if tracked.names_ids else without_id(opening)))
    return messages


class PickedMessages(Generic[M]):
    """The messages that show a view, without the opening message and what may change at the end. They grow with the view."""

    def __init__(self, adapter: MessageAdapter[M], tracked: TrackedConversation[M], noted_after: str | None) -> None:
        """
        Args:
            adapter: The framework's adapter.
            tracked: The conversation.
            noted_after: Id of the item after which the line about usage stands; None if there is no such line.
        """
        self._adapter = adapter
        self._tracked = tracked
        self._noted_after = noted_after
        self._is_note_due = False
        self._entries: list[Entry[M]] = []
        self._places: list[int] = []  # of the last message that each entry shows, or that its summary stands before
        self._shown: list[M] = []  # the messages of the first entries
        self._remade: list[int] = []  # the numbers of entries whose message may differ although the framework's is the same object
        self._originals: list[M] = []  # the framework's messages of which they were made
        self._seen_messages = 0  # of the framework
        self._seen_items = 0  # of the view, without summaries at its end
        self._lost_reasoning = False  # True once reasoning of the current response is not in the view
        self._last_response = -1  # place of the last entry's message if it is a response, else -1

    def can_continue(self, tracked: TrackedConversation[M], view: Session) -> bool:
        """True if a view with the same list of items shows these messages and maybe more."""
        is_shorter = len(view.items) < self._seen_items or len(tracked.items) < self._seen_messages
        return tracked is self._tracked and view.usage_noted_after == self._noted_after and not is_shorter

    def messages(self, view: Session) -> list[M]:
        """Take the new messages, and return all that show the view."""
        adapter, tracked = self._adapter, self._tracked
        new_items = view.items[self._seen_items :]
        in_view = {item.id: item for item in new_items if not is_digest(item)}
        inserted = self._inserted_messages(new_items)
        for place, items in enumerate(tracked.items[self._seen_messages :], self._seen_messages):
            visible = [in_view.get(item.id) for item in items]
            while inserted and inserted[0][0] <= place and not any(isinstance(form, FunctionCallOutput) for form in visible):
                _, item_id, message = inserted.pop(0)
                self._add(place, partial(_same, message))
                self._last_response = -1
                self._is_note_due = self._is_note_due or item_id == self._noted_after
            self._take(place, items, visible)
        self._seen_messages = len(tracked.items)
        self._seen_items = len(view.items)
        while self._seen_items and isinstance(view.items[self._seen_items - 1], Compaction):
            self._seen_items -= 1
        messages = [*self._shown_messages(), *(message for _, _, message in inserted)]
        is_note_due = self._is_note_due or self._noted_after in [item_id for _, item_id, _ in inserted]
        if is_note_due and grouping(view).is_followed:
            messages.append(_usage_note(adapter, tracked))
        return messages

    def _shown_messages(self) -> list[M]:
        """Return the messages of all entries. The first ones are known if the framework has passed the same objects again."""
        originals, known = self._tracked.messages, self._originals
        same = common_start(known, originals)
        first = min(len(self._shown), bisect_left(self._places, same))
        self._shown[first:] = [self._made(entry) for entry in self._entries[first:]]
        for number in self._remade[: bisect_left(self._remade, first)]:
            self._shown[number] = self._made(self._entries[number])
        self._originals = list(originals)
        return self._shown

    def _take(self, place: int, items: list[Item], visible: list[Item | None]) -> None:
        """Take the next message of the framework."""
        adapter, tracked = self._adapter, self._tracked
        is_response = is_answer(items[0])
        lost_reasoning = self._lost_reasoning and is_response
        self._lost_reasoning = lost_reasoning or any(
            isinstance(item, Reasoning) and form is None for item, form in zip(items, visible, strict=True)
        )
        if not any(visible):
            # Reasoning that is still there has lost the item that followed it: the next one may not say that it is another.
            self._lost_reasoning |= is_response and not adapter.is_message_whole_response
            return
        entry = self._entry(place, items, visible)
        if self._is_note_due and entry is not None and is_response:
            self._add(place, partial(_usage_note, adapter, tracked))
            self._is_note_due, self._last_response = False, -1
        self._is_note_due = self._is_note_due or any(form is not None and form.id == self._noted_after for form in visible)
        if entry is None:
            return
        is_whole_response = adapter.is_message_whole_response and is_response
        if is_whole_response and 0 <= self._last_response < place - 1:
            # The messages between were dropped, and providers refuse two responses in a row.
            earlier = self._entries.pop()
            del self._places[-1], self._shown[len(self._entries) :], self._remade[bisect_left(self._remade, len(self._entries)) :]
            entry = [*(earlier if isinstance(earlier, list) else [(self._last_response, earlier)]), (place, entry)]
        self._last_response = place if is_whole_response else -1
        self._add(place, entry)

    def _add(self, place: int, entry: Entry[M]) -> None:
        if isinstance(entry, list) or getattr(entry, "func", None) is _visible_message:
            self._remade.append(len(self._entries))
        self._entries.append(entry)
        self._places.append(place)

    def _entry(self, place: int, items: list[Item], visible: list[Item | None]) -> Entry[M] | None:
        """Return the entry of a message, None if nothing of it can be sent."""
        is_complete = all(map(is_, visible, items))
        if is_complete and not self._lost_reasoning:
            return place
        make = partial(_visible_message, self._adapter, self._tracked, place, visible, lost_reasoning=self._lost_reasoning)
        if is_complete:  # a later request may have to remove other ids
            return cast("Callable[[], M]", make)
        message = make()
        return None if message is None else partial(_same, message)

    def _made(self, entry: Entry[M]) -> M:
        if isinstance(entry, int):
            return self._tracked.messages[entry]
        if not isinstance(entry, list):
            return entry()
        (_, first), *rest = entry
        message = self._made(first)
        for place, other in rest:
            message = _merged_response(self._adapter, self._tracked, place, message, self._made(other))
        return message

    def _inserted_messages(self, new_items: Sequence[Item]) -> list[tuple[int, str, M]]:
        """Return the new summaries and digests in order: of each the number of messages before it, its id, and it as a message."""
        if not any(isinstance(item, Compaction) or is_digest(item) for item in new_items):
            return []
        tracked, first = self._tracked, self._seen_messages
        if not self._seen_items:  # what another list of items had is not needed any more
            tracked.inserted = {item.id: tracked.inserted[item.id] for item in new_items if item.id in tracked.inserted}
        message_of = {item.id: place for place, items in enumerate(tracked.items[first:], first) for item in items}
        inserted: list[tuple[int, str, M]] = []
        place = len(tracked.items)
        for item in reversed(new_items):
            if not (isinstance(item, Compaction) or is_digest(item)):
                place = message_of.get(item.id, place)  # a system prompt outside the messages is in none of them
                continue
            inserted.append((place, item.id, self._inserted_message(item)))
        return inserted[::-1]

    def _inserted_message(self, item: Item) -> M:
        """Return a summary or digest as a message. The same item always gives the same object."""
        known = self._tracked.inserted.get(item.id)
        if known is None or known[0] is not item:
            if isinstance(item, Compaction):
                text = summary_text(item.summary)
            else:
                shown = item if self._tracked.names_ids else unnamed(item)
                text = shown.text if isinstance(shown, Message) else ""
            known = self._tracked.inserted[item.id] = item, self._adapter.user_message(text)
        return known[1]


def _same(message: M) -> M:
    return message


def _usage_note(adapter: MessageAdapter[M], tracked: TrackedConversation[M]) -> M:
    """Return the line about usage as a message: always the same object."""
    if tracked.usage_note is None:
        tracked.usage_note = adapter.user_message(USAGE_NOTE)
    return tracked.usage_note


def _opening_message(adapter: MessageAdapter[M], tracked: TrackedConversation[M], text: str) -> M:
    """Return the message that the conversation begins with. The same text always gives the same object."""
    if text == PREAMBLE:
        return adapter.preamble
    if tracked.opening is None or tracked.opening[0] != text:
        tracked.opening = text, adapter.user_message(text)
    return tracked.opening[1]


def _visible_message(
    adapter: MessageAdapter[M], tracked: TrackedConversation[M], place: int, visible: list[Item | None], *, lost_reasoning: bool
) -> M | None:
    """Return the message itself, a copy that shows the visible items, or None if nothing of it can be sent."""
    message, items = tracked.messages[place], tracked.items[place]
    is_complete = all(map(is_, visible, items))
    if is_complete and not (lost_reasoning and adapter.without_reasoning_links(message) is not message):
        return message
    copy = tracked.partial_copies.get(place)
    if copy is None or copy.is_unlinked != lost_reasoning or not all(map(is_, visible, copy.visible)):
        forms = visible if tracked.names_ids else [None if form is None else unnamed(form) for form in visible]
        new_message = _partial_copy(adapter, message, items, forms, lost_reasoning=lost_reasoning)
        copy = tracked.partial_copies[place] = PartialCopy(visible, lost_reasoning, new_message)
    return copy.message


def _partial_copy(
    adapter: MessageAdapter[M], message: M, items: list[Item], visible: list[Item | None], *, lost_reasoning: bool
) -> M | None:
    copy: M | None = message
    if not any(form is not None for form in visible):
        return None
    if not all(map(is_, visible, items)):
        copy = adapter.partial_copy(message, items, visible)
    return adapter.without_reasoning_links(copy) if lost_reasoning and copy is not None else copy


def _merged_response(adapter: MessageAdapter[M], tracked: TrackedConversation[M], place: int, earlier: M, later: M) -> M:
    """Return two responses as one message. The same two responses always give the same object."""
    merged = tracked.merged_responses.get(place)
    if merged is None or merged[0] is not earlier or merged[1] is not later:
        merged = tracked.merged_responses[place] = (earlier, later, adapter.merge_responses(earlier, later))
    return merged[2]
