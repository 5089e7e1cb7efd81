"""A reader for SQLite databases of sessions and their messages. A format is a table: its name, the column that shows it, and functions
that read a session's row and a message's. `goose.py` is an example, `databases.py` reads rows.

`DATABASE/SESSION` names one session in a database, with its sub-agents.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from session.errors import TranscriptError

from .account import TranscriptAccount
from .databases import HEADER, beside, is_file, opened, rows
from .draft import Draft, finish
from .record_feed import ReadRecord, feed_entries
from .requests import Request
from .source import Source, open_file
from .usage import Counts
from .values import JsonObject


@dataclass(frozen=True, slots=True)
class Chat:
    """A session in a database.

    Attributes:
        id: Its id.
        parent: The id of the session whose sub-agent it is; empty if it is none.
        folder: The folder in which the assistant worked; empty if unknown.
        updated: When it changed last, in Unix seconds.
        metadata: What else the session's metadata says, such as its title and its model.
        requests: What it reports of its requests.
        in_order: Those of them that gave the session's answers, one each, in order; empty if they are not known.
        note: A sentence on usage that it does not report by request; empty if there is none.
    """

    id: str
    parent: str
    folder: str
    updated: float
    metadata: dict[str, str]
    requests: tuple[Request, ...]
    in_order: tuple[Request, ...] = ()
    note: str = ""


Row: TypeAlias = JsonObject
"""A row of a table, by the names of its columns."""


@dataclass(frozen=True, slots=True)
class ChatDatabase:
    """A format of databases with a table `sessions` and a table `messages`.

    Attributes:
        name: The format's name.
        file: The database's usual name.
        column: The column of `messages` that shows the format.
        chat_of: Returns the session of a row of `sessions`.
        messages_of: Returns the messages of a row of `sessions`, in order. None for one that is damaged.
        reader: Returns the reader of the messages of a session that grows.
    """

    name: str
    file: str
    column: str
    chat_of: Callable[[sqlite3.Connection, Path, Row], Chat]
    messages_of: Callable[[sqlite3.Connection, Row], list[JsonObject | None]]
    reader: Callable[[Draft], ReadRecord]

    def chats(self, path: Path) -> list[Chat]:
        """Return the sessions that a path names: those of a database, or one of them with its sub-agents.

        Raises:
            TranscriptError: The database cannot be read, or holds no such session.
        """
        with self._opened(path) as (_, chats):
            return [chat for chat, _ in chats]

    @contextmanager
    def _opened(self, path: Path) -> Iterator[tuple[sqlite3.Connection, list[tuple[Chat, Row]]]]:
        """Return an open database, and the sessions that the path names, with their rows."""
        file, session_id = file_and_session(path)
        try:
            with opened(file) as database:
                chats = [(self.chat_of(database, file, row), row) for row in rows(database, "sessions", by="created_at rowid")]
                if session_id and not any(chat.id == session_id for chat, _ in chats):
                    raise TranscriptError(file, f"holds no session {session_id}")
                yield database, list(_family(chats, session_id)) if session_id else chats
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise TranscriptError(path, f"is not a database of {self.name} that we can read: {error}") from None

    def read(self, source: Source, *, with_sidechains: bool) -> TranscriptAccount:
        """Return the sessions that the path names: first those that no other one of them has started.

        Raises:
            TranscriptError: The database cannot be read, or there are no messages.
        """
        drafts: list[Draft] = []
        count = 0
        with self._opened(source.path) as (database, chats):
            ids = {chat.id for chat, _ in chats}
            main = [one for one in chats if one[0].parent not in ids]
            others = [one for one in chats if one[0].parent in ids] if with_sidechains else []
            for chat, row in [*main, *others]:
                names = {"session_id": chat.id, "cwd": chat.folder, "parent_session": chat.parent, **chat.metadata}
                draft = Draft(self.name, source, chat.id, {name: value for name, value in names.items() if value})
                messages = self.messages_of(database, row)
                feed_entries(messages, draft, self.reader(draft), first=count + 1)
                draft.report_in_order(Counts(one.input_tokens, one.cache_read, one.cache_write, one.output_tokens) for one in chat.in_order)
                drafts.append(draft)
                count += len(messages)
        if not drafts:
            raise TranscriptError(source.path, "contains no messages")
        return finish(self.name, source, drafts, main_count=sum(bool(draft.mark()) for draft in drafts[: len(main)]))

    def requests(self, path: Path) -> tuple[list[Request], str]:
        """Return the requests of the sessions that the path names, and a note on the usage.

        Raises:
            TranscriptError: The database cannot be read.
        """
        with self._opened(path) as (database, chats):
            reported = {chat.id: [one for one in chat.requests if one.total or one.cost] for chat, _ in chats}
            notes = Counter(chat.note for chat, _ in chats if reported[chat.id])
            for chat, _ in chats:  # of a sub-agent, its parent may have the usage
                if not reported[chat.id] and not reported.get(chat.parent) and _has_answers(database, chat.id):
                    notes[NO_USAGE] += 1
        texts = (f"{count:,} session{'s' * (count > 1)}: {note}" for note, count in sorted(notes.items()) if note)
        return [one for requests in reported.values() for one in requests], "; ".join(texts)


NO_USAGE = "answers of a model, but no usage of them that can be read"


def _has_answers(database: sqlite3.Connection, session_id: str) -> bool:
    question = "SELECT 1 FROM messages WHERE session_id = ? AND role = 'assistant' LIMIT 1"
    return database.execute(question, (session_id,)).fetchone() is not None


def file_and_session(path: Path) -> tuple[Path, str]:
    """Return the database that a path names and, if it names a session in one, the session's id."""
    return (path.parent, path.name) if path.parent.suffix == ".db" and is_file(path.parent) else (path, "")


def columns_of(path: Path) -> frozenset[str]:
    """Return the columns of the table `messages` of the database that a path names. Empty if it names none, or one without the table."""
    file, _ = file_and_session(path)
    try:
        with open_file(file) as stream:
            if stream.read(len(HEADER)) != HEADER:
                return frozenset()
        with opened(file) as database:
            return frozenset(name for _, name, *_ in database.execute("PRAGMA table_info(messages)"))
    except (TranscriptError, sqlite3.Error, OSError, UnicodeError):
        return frozenset()


def files_of(path: Path) -> list[Path]:
    """Return the files whose change means that the database has changed."""
    file, _ = file_and_session(path)
    return [file, beside(file, "-wal")]


def _family(chats: Iterable[tuple[Chat, Row]], session_id: str) -> Iterator[tuple[Chat, Row]]:
    """Yield a session and its sub-agents, and theirs. A sub-agent is younger than what started it."""
    ids = {session_id}
    for chat, row in chats:
        if chat.id in ids or chat.parent in ids:
            ids.add(chat.id)
            yield chat, row
