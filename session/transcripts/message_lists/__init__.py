"""Reads plain lists of messages, wherever they are in a document: requests and responses in the providers' forms, logs of
benchmarks, and bare lists. Each list is a session. In a JSONL file each line may hold a list, or be a message itself.

`find_lists.py` finds the lists. `request_context.py` reads the rest of a list's request: system prompt, tools, response, usage.
`conversation.py` writes both into a draft. `inspect_logs.py` handles the logs of Inspect.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from session.transcripts.account import TranscriptAccount
from session.transcripts.draft import Draft, finish
from session.transcripts.record import Record
from session.transcripts.record_feed import feed, record_unread
from session.transcripts.source import Line, Source
from session.transcripts.values import JsonObject
from session.transcripts.writer import Writer, is_message

from .conversation import draft_conversation
from .find_lists import find_lists

NAME = "message_lists"


def claims(value: object) -> bool:
    """Return True if the value is a message, or contains a list of messages."""
    return (isinstance(value, dict) and is_message(value)) or next(find_lists(value), None) is not None


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - a list of messages has no sub-agents
    """Return the sessions in the file.

    Raises:
        TranscriptError: The file contains no messages.
    """
    document, lines = source.document_or_lines()
    drafts = _drafts_of_document(source, document) if document is not None else _drafts_of_lines(source, lines)
    return finish(NAME, source, drafts)


def _drafts_of_document(source: Source, document: object) -> list[Draft]:
    """Return a draft for each list of messages. Records are messages, numbered through the whole document."""
    numbers = count(1)
    used_ids: set[str] = set()

    def next_record(draft: Draft) -> Record:
        return draft.record(next(numbers))

    if isinstance(document, dict) and is_message(document):
        document = [document]
    lists = list(find_lists(document))
    return [
        draft_conversation(NAME, source, message_list, str(number) if len(lists) > 1 else "", used_ids, next_record)
        for number, message_list in enumerate(lists, 1)
    ]


def _drafts_of_lines(source: Source, lines: Iterator[Line]) -> list[Draft]:
    """Return a draft for all lines that are messages, and one for each list of messages on other lines.

    The first draft also has the records of blank and damaged lines.
    """
    used_ids = {source.path.stem}
    messages_draft = Draft(NAME, source, source.path.stem)
    writer = Writer(messages_draft)
    drafts = [messages_draft]

    def write_message(_: Draft, record: Record, value: JsonObject) -> None:
        writer.write(record, value)

    for line in lines:
        for value in line.values:
            if isinstance(value, dict) and is_message(value):
                feed(messages_draft, messages_draft.record(line.number), value, write_message)
            elif list_drafts := _drafts_of_value(source, line, value, used_ids):
                drafts += list_drafts
            else:
                feed(messages_draft, messages_draft.record(line.number), value, _skip_unknown)
        record_unread(line, messages_draft)
    return drafts


def _skip_unknown(_: Draft, record: Record, __: JsonObject) -> None:
    record.skip("unknown: contains no list of messages")


def _drafts_of_value(source: Source, line: Line, value: object, used_ids: set[str]) -> list[Draft]:
    def line_record(draft: Draft) -> Record:
        return draft.record(line.number)

    lists = list(find_lists(value))
    has_several = len(lists) > 1 or len(line.values) > 1
    return [
        draft_conversation(
            NAME, source, message_list, f"{line.number}.{len(used_ids)}" if has_several else str(line.number), used_ids, line_record
        )
        for message_list in lists
    ]
