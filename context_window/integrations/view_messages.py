"""Pick the framework's messages that show a view of their conversation.

A message that the view shows whole is the framework's own object. One that is shown in part is a copy, made once and then reused. A summary
stands where the messages that it replaces stood.
"""

from __future__ import annotations

from operator import is_
from typing import TypeVar

from session.items import Compaction, FunctionCallOutput, Item, Reasoning
from session.providers.additions import PREAMBLE, USAGE_NOTE, summary_text
from session.providers.conversation import Conversation
from session.session import Session
from session.units import grouping, is_answer

from .message_adapter import MessageAdapter
from .tracked_conversation import PartialCopy, TrackedConversation

M = TypeVar("M")


def view_messages(adapter: MessageAdapter[M], tracked: TrackedConversation[M], view: Session) -> list[M]:
    """Return the messages to send for a view.

    Args:
        adapter: The framework's adapter.
        tracked: The conversation. New copies are stored in it.
        view: A view of its session.
    """
    if view is tracked.session:
        return list(tracked.messages)
    in_view = {item.id: item for item in view.items}
    messages: list[M] = []
    lost_reasoning = False  # True once reasoning of the current response is not in the view
    last_response = -1  # position of the last message in `messages` if it is a response, else -1
    summaries = _summaries_by_place(adapter, tracked, view)
    noted_after, is_note_due = view.usage_noted_after, False
    for place, items in enumerate(tracked.items):
        if summaries and summaries[0][0] <= place and not isinstance(items[0], FunctionCallOutput):
            _, summary_id, summary = summaries.pop(0)
            messages.append(summary)
            last_response = -1
            is_note_due = is_note_due or summary_id == noted_after
        visible = [in_view.get(item.id) for item in items]
        lost_reasoning = lost_reasoning and is_answer(items[0])
        if not any(visible):
            lost_reasoning = lost_reasoning or any(isinstance(item, Reasoning) for item in items)
            continue
        lost_reasoning |= any(isinstance(item, Reasoning) and form is None for item, form in zip(items, visible, strict=True))
        message = _visible_message(adapter, tracked, place, visible, lost_reasoning=lost_reasoning)
        if is_note_due and message is not None and is_answer(items[0]):
            messages.append(_usage_note(adapter, tracked))
            is_note_due, last_response = False, -1
        is_note_due = is_note_due or any(form is not None and form.id == noted_after for form in visible)
        if message is None:
            continue
        if adapter.is_message_whole_response and is_answer(items[0]):
            if 0 <= last_response < place - 1:  # the messages between were dropped, and providers refuse two responses in a row
                message = _merged_response(adapter, tracked, place, messages.pop(), message)
            last_response = place
        else:
            last_response = -1
        messages.append(message)
    messages += [message for _, _, message in summaries]
    is_note_due = is_note_due or noted_after in [summary_id for _, summary_id, _ in summaries]
    if is_note_due and grouping(view).is_followed:
        messages.append(_usage_note(adapter, tracked))
    if (opening := Conversation.opening_of(view)) is not None:
        place = next((place for place, message in enumerate(messages) if not adapter.is_system(message)), len(messages))
        messages.insert(place, _opening_message(adapter, tracked, opening))
    return messages


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


def _summaries_by_place(adapter: MessageAdapter[M], tracked: TrackedConversation[M], view: Session) -> list[tuple[int, str, M]]:
    """Return the view's summaries in order: of each the number of messages before it, its id, and it as a message."""
    if not any(isinstance(item, Compaction) for item in view.items):
        return []
    message_of = {item.id: place for place, items in enumerate(tracked.items) for item in items}
    summaries: list[tuple[int, str, M]] = []
    place = len(tracked.items)
    for item in reversed(view.items):
        if not isinstance(item, Compaction):
            place = message_of[item.id]
            continue
        message = tracked.summaries.get(item.id)
        if message is None:
            message = tracked.summaries[item.id] = adapter.user_message(summary_text(item.summary))
        summaries.append((place, item.id, message))
    return summaries[::-1]


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
        new_message = _partial_copy(adapter, message, items, visible, lost_reasoning=lost_reasoning)
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
