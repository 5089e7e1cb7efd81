"""Peculiarities of the logs of Inspect: texts that are stored once and referred to by name, and an event for each model call."""

from __future__ import annotations

from session.transcripts.usage import Counts, usage_of
from session.transcripts.values import JsonObject, list_at, object_at

from .find_lists import MessageList

_REFERENCE = "attachment://"
DEPTH_MAX = 20


def resolve_attachments(value: object, attachments: JsonObject, depth: int = DEPTH_MAX) -> object:
    """Return the value with each reference to an attachment replaced by the attachment's text.

    Args:
        value: A message, or a part of one.
        attachments: Texts by name.
        depth: Levels of nesting to search.
    """
    if isinstance(value, str) and value.startswith(_REFERENCE):
        text = attachments.get(value.removeprefix(_REFERENCE))
        return text if isinstance(text, str) else value
    if depth and isinstance(value, dict):
        return {name: resolve_attachments(member, attachments, depth - 1) for name, member in value.items()}
    if depth and isinstance(value, list):
        return [resolve_attachments(member, attachments, depth - 1) for member in value]
    return value


def usage_by_index(message_list: MessageList) -> dict[int, Counts]:
    """Return the usage of each response by its index in the list, from the events next to it. Empty if they do not match."""
    if not message_list.parents:
        return {}
    sample = message_list.parents[0]
    events = list_at(sample, "events") or list_at(object_at(sample, "transcript"), "events")
    calls = [event for event in events if isinstance(event, dict) and event.get("event") == "model"]
    indices = [
        index for index, message in enumerate(message_list.messages) if isinstance(message, dict) and message.get("role") == "assistant"
    ]
    if not calls or len(calls) != len(indices):
        return {}
    reports = [usage_of(object_at(object_at(call, "output"), "usage")) for call in calls]
    return {index: usage for index, usage in zip(indices, reports, strict=True) if usage is not None}
