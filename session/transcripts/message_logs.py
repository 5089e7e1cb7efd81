"""A reader for logs whose records each hold a message of a provider's style. A format is a table: its name, its marks, and a
function from a record to its message. `droid.py` is an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .account import TranscriptAccount
from .draft import Draft, finish
from .record import Record
from .record_feed import feed_lines
from .source import Source
from .values import JsonObject, text_at
from .writer import Writer, is_message


@dataclass(frozen=True, slots=True)
class MessageLog:
    """A format of JSONL in which each record holds at most one message.

    Attributes:
        name: The format's name.
        claims: Returns True if the value shows that the file has this format.
        message_of: Returns the message in a record, in the form of a provider; None if it holds none.
        known: Reasons why the model never sees a record, by its `type`. A record without a message and of another type is unknown.
        describe: Returns what a record says of the session: `session_id`, `model`, `cwd`.
        source_of: Returns the subject of a message in the user's role that the tool wrote; None for the user's own.
    """

    name: str
    claims: Callable[[object], bool]
    message_of: Callable[[JsonObject], JsonObject | None]
    known: Mapping[str, str]
    describe: Callable[[JsonObject], Mapping[str, str]]
    source_of: Callable[[JsonObject], str | None] = lambda _: None

    def read(self, source: Source) -> TranscriptAccount:
        """Return the session in the file.

        Raises:
            TranscriptError: The file contains no messages.
        """
        draft = Draft(self.name, source, source.path.stem)
        writer = Writer(draft)

        def read_record(_: Draft, record: Record, value: JsonObject) -> None:
            draft.describe(**self.describe(value))
            message = self.message_of(value)
            if message is not None and is_message(message):
                stamp = {} if "timestamp" in message or "timestamp" not in value else {"timestamp": value["timestamp"]}
                writer.write(record, {**message, **stamp}, source=self.source_of(value))
            else:
                kind = text_at(value, "type")
                record.skip(self.known.get(kind) or f"unknown type {kind!r}"[:100])

        feed_lines(source.lines(), draft, read_record)
        draft.id = draft.metadata.get("session_id", draft.id)
        return finish(self.name, source, [draft], main_count=1)
