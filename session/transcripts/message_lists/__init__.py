"""Plain lists of messages, wherever they lie in a document: requests and answers as providers have them, logs of benchmarks,
bare lists. One session a list; in a file of lines, one a line, or one of lines that are messages themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from session.transcripts.account import TranscriptAccount
from session.transcripts.draft import Draft, Record, finish
from session.transcripts.feeding import feed
from session.transcripts.reading import Line
from session.transcripts.shape import document_or_lines
from session.transcripts.source import Source
from session.transcripts.values import JsonObject
from session.transcripts.writer import Writer, is_message

from .conversation import write
from .find import find

NAME = "message_lists"


def claims(value: object) -> bool:
    """Whether there is a list of messages in the value, or it is a message."""
    return (isinstance(value, dict) and is_message(value)) or next(find(value), None) is not None


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - one list has no other beneath it
    """The sessions in the file.

    Raises:
        TranscriptError: Nobody says anything in it.
    """
    whole, lines = document_or_lines(source)
    drafts = _of_document(source, whole) if whole is not None else _of_lines(source, lines)
    return finish(NAME, source, drafts)


def _of_document(source: Source, document: object) -> list[Draft]:
    """One draft a list of messages, and a record a message: its place among all of the document's."""
    places = count(1)
    taken: set[str] = set()

    def next_record(draft: Draft) -> Record:
        return draft.record(next(places))

    if isinstance(document, dict) and is_message(document):
        document = [document]
    found = list(find(document))
    return [write(NAME, source, one, str(number) if len(found) > 1 else "", taken, next_record) for number, one in enumerate(found, 1)]


def _of_lines(source: Source, lines: Iterator[Line]) -> list[Draft]:
    """One draft a list of messages. Lines that are messages themselves are one session, which has the lines with nothing on them too."""
    taken = {source.path.stem}
    loose = Draft(NAME, source, source.path.stem)
    writer = Writer(loose)
    drafts = [loose]

    def take(_: Draft, record: Record, value: JsonObject) -> None:
        writer.write(record, value)

    for line in lines:
        own: Record | None = None
        for value in line.values:
            if isinstance(value, dict) and is_message(value):
                own = own or loose.record(line.number)
                feed(loose, own, value, take)
            elif not (made := _of_value(source, line, value, taken)):
                own = own or loose.record(line.number)
                own.skip("no list of messages is in it")
            else:
                drafts += made
        if line.problem:
            loose.damage(own or loose.record(line.number), line.problem)
        elif not line.values:
            loose.record(line.number).skip("a blank line")
    return drafts


def _of_value(source: Source, line: Line, value: object, taken: set[str]) -> list[Draft]:
    records: dict[int, Record] = {}  # one for each draft, as a line is one record

    def next_record(draft: Draft) -> Record:
        return records[id(draft)] if id(draft) in records else records.setdefault(id(draft), draft.record(line.number))

    found = list(find(value))
    several = len(found) > 1 or len(line.values) > 1
    return [write(NAME, source, one, f"{line.number}.{len(taken)}" if several else str(line.number), taken, next_record) for one in found]
