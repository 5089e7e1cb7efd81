"""Reads OpenHands' logs: histories of events, as lists, inside documents or as JSONL, and those of its newer agent SDK.

`events.py` and `sdk_events.py` read the two kinds of events; `condensation.py` keeps track of what a condensation replaces.
"""

from __future__ import annotations

from collections.abc import Iterator

from session.transcripts.account import TranscriptAccount
from session.transcripts.draft import Draft, finish
from session.transcripts.record_feed import ReadRecord, feed, feed_entries, record_unread
from session.transcripts.source import Line, Source
from session.transcripts.usage import usage_of
from session.transcripts.values import JsonObject, carried, id_at, list_at, object_at, objects_at, text_at

from . import sdk_events
from .events import OpenHandsEventReader, is_event

NAME = "openhands"

FIELD_CHARS_MAX = 2_000
"""Characters of JSON that one field next to a history may have to go into the metadata."""
CONTENT_FIELDS = ("history", "metrics", "instruction", "git_patch", "error", "test_result")
"""Fields next to a history that do not describe the run."""


def claims(value: object) -> bool:
    """Return True if the value is a history of events, a record with one, or an event."""
    if isinstance(value, dict):
        return is_event(value) or sdk_events.is_event(value) or _is_history(value.get("history"))
    return _is_history(value)


def _is_history(value: object) -> bool:
    """Return True if the value is a list of events. Older logs pair each action with its observation."""
    if not isinstance(value, list):
        return False
    first = next((entry for entry in _flatten(value[:2]) if isinstance(entry, dict)), None)
    return first is not None and (is_event(first) or sdk_events.is_event(first))


def _flatten(history: list[object]) -> Iterator[object]:
    for entry in history:
        yield from entry if isinstance(entry, list) else [entry]


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents write into the same history
    """Return the sessions in the file: one, or one for each line that is a record with a history of its own.

    Raises:
        TranscriptError: The file contains no messages.
    """
    document, lines = source.document_or_lines()
    if isinstance(document, list):
        draft = Draft(NAME, source, source.path.stem)
        _feed_history(draft, document)
        return finish(NAME, source, [draft])
    if isinstance(document, dict) and _is_history(document.get("history")):
        draft = _new_draft(source, document, source.path.stem)
        _feed_history(draft, list_at(document, "history"))
        _report_metrics(draft, document)
        return finish(NAME, source, [draft])
    return finish(NAME, source, _drafts_of_lines(source, lines))


def _feed_history(draft: Draft, history: list[object]) -> None:
    feed_entries(_flatten(history), draft, _reader(draft, next(_flatten(history), None)))


def _reader(draft: Draft, first_event: object) -> ReadRecord:
    """Return the reader for the kind of the first event."""
    is_sdk = isinstance(first_event, dict) and sdk_events.is_event(first_event)
    return sdk_events.OpenHandsSdkReader(draft).read_event if is_sdk else OpenHandsEventReader(draft).read_event


def _drafts_of_lines(source: Source, lines: Iterator[Line]) -> list[Draft]:
    """Return one draft for all lines that are events, and one for each line that is a record with a history."""
    events_draft = Draft(NAME, source, source.path.stem)
    read_event: ReadRecord | None = None
    drafts = [events_draft]
    for line in lines:
        for value in line.values:
            if isinstance(value, dict) and _is_history(value.get("history")):
                draft = _new_draft(source, value, f"{source.path.stem}:{line.number}")
                history = list(_flatten(list_at(value, "history")))
                read_history_event = _reader(draft, history[0])
                for event in history:
                    feed(draft, draft.record(line.number), event, read_history_event)
                _report_metrics(draft, value)
                drafts.append(draft)
            else:
                read_event = read_event or _reader(events_draft, value)
                feed(events_draft, events_draft.record(line.number), value, read_event)
        record_unread(line, events_draft)
    return drafts


def _new_draft(source: Source, document: JsonObject, session_id: str) -> Draft:
    fields = {name: value for name, value in document.items() if name not in CONTENT_FIELDS and value}
    description = {name: copy for name, value in fields.items() if (copy := carried(value, FIELD_CHARS_MAX)) is not None}
    metadata = {
        "session_id": id_at(document, "instance_id"),
        "model": text_at(object_at(object_at(document, "metadata"), "llm_config"), "model"),
        "record": description,
    }
    return Draft(NAME, source, session_id, metadata)


def _report_metrics(draft: Draft, document: JsonObject) -> None:
    """Report the usage of each response, if the record lists it separately."""
    for usage in objects_at(object_at(document, "metrics"), "token_usages"):
        if response := text_at(usage, "response_id"):
            draft.report(response, usage_of(usage))
