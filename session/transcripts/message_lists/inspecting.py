"""What is peculiar to the logs of Inspect: contents kept in one place and named elsewhere, and one event for each call of the model."""

from __future__ import annotations

from session.transcripts.usages import Counts, usage_of
from session.transcripts.values import JsonObject, list_at, object_at

from .find import Found

_NAMED = "attachment://"
DEPTH = 20


def resolved(value: object, attachments: JsonObject, depth: int = DEPTH) -> object:
    """The value with each text that names an attachment replaced by it.

    Args:
        value: A message, or something in it.
        attachments: By name.
        depth: Levels to go down.
    """
    if isinstance(value, str) and value.startswith(_NAMED):
        found = attachments.get(value.removeprefix(_NAMED))
        return found if isinstance(found, str) else value
    if depth and isinstance(value, dict):
        return {name: resolved(member, attachments, depth - 1) for name, member in value.items()}
    if depth and isinstance(value, list):
        return [resolved(member, attachments, depth - 1) for member in value]
    return value


def usages_by_message(found: Found) -> dict[int, Counts]:
    """The usage of each answer in the list, by its place there, as the events beside it tell. Empty where they do not match."""
    if not found.around:
        return {}
    sample = found.around[0]
    events = list_at(sample, "events") or list_at(object_at(sample, "transcript"), "events")
    calls = [event for event in events if isinstance(event, dict) and event.get("event") == "model"]
    places = [place for place, message in enumerate(found.messages) if isinstance(message, dict) and message.get("role") == "assistant"]
    if not calls or len(calls) != len(places):
        return {}
    reported = [usage_of(object_at(object_at(call, "output"), "usage")) for call in calls]
    return {place: usage for place, usage in zip(places, reported, strict=True) if usage is not None}
