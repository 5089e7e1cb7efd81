"""A session under construction, built record by record. Used by all readers except Claude Code's, whose records form a tree.

The draft makes item ids unique, groups the items of a response, and records the fate of each record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from session.errors import FormatError, TranscriptError
from session.items import Compaction, Item, Message, MessageCategory
from session.parts import Part
from session.sanitize import clean
from session.session import Session
from session.units import is_answer
from session.usage import Usage

from .account import DAMAGED, ITEM, NOT_CONTEXT, LineRecord, TranscriptAccount
from .compactions import KeepRule, resolve_replacements
from .record import Record
from .source import UNREADABLE, Source
from .unique_ids import UniqueIds
from .usage import Counts
from .values import carriable

WARNINGS_MAX = 20
"""Warnings that a session's metadata holds; further ones are only counted."""


UNKNOWN_SHARE = 0.05
"""Share of a log's text in unknown records above which the session's first warning says so."""


class Draft:
    """A session that grows record by record.

        draft = Draft(NAME, source, "5d1c")
        record = draft.record(1)
        draft.put(record, Message("user", "hi", id=draft.new_id("m1", record)))
        account = finish(NAME, source, [draft])

    Attributes:
        id: Id of the session.
        metadata: Metadata of the session. `finish` adds `lines` and `warnings`.
    """

    def __init__(self, name: str, source: Source, session_id: str, metadata: Mapping[str, Any] | None = None) -> None:
        """
        Args:
            name: Name of the format.
            source: The file.
            session_id: The session's id in the file, or another text that is unique among the file's sessions.
            metadata: JSON values to carry along. Empty ones are left out.
        """
        self.id = clean(session_id)
        self.metadata: dict[str, Any] = {"source": {"format": name, "path": source.name}}
        self.describe(**(metadata or {}))
        self._records: list[Record] = []
        self._item_ids = UniqueIds()
        self._groups: list[tuple[str, list[Item]]] = []  # in order: a response, or an empty text, and its items
        self._group_of_response: dict[str, list[Item]] = {}
        self._usage: dict[str, Usage] = {}  # by response
        self._hosts: dict[str, str] = {}  # by response
        self._models: dict[str, object] = {}  # by response: the model in the metadata when its first item was put
        self._warnings: list[str] = []
        self._log: list[tuple[Record, list[Item], Item]] = []  # each item in the order it was put, with its record and group
        self._compactions: dict[str, KeepRule] = {}  # by item id: those whose `replaces` is resolved at the end

    def describe(self, **metadata: Any) -> None:
        """Add the values that are not empty to the session's metadata."""
        self.metadata |= {name: value for name, value in metadata.items() if value}

    def record(self, number: int) -> Record:
        """Return the record with this number. It is created on the first call and is not context until an item is put.

        Args:
            number: The line's number, or the entry's number in the document. Never lower than in the previous call.
        """
        if not self._records or self._records[-1].number != number:
            self._records.append(Record(number))
        return self._records[-1]

    def damage(self, record: Record, problem: str) -> None:
        """Mark the record as damaged, or a part of it. The session gets a warning."""
        if record.fate is NOT_CONTEXT:
            record.fate = DAMAGED
        record.reasons.append(problem)
        self.warn(record, problem)

    def add_problem(self, problem: str) -> None:
        """Report something outside the records that cannot be read, as a warning and as a reason of the first record."""
        self._warnings.append(problem)
        for record in self._records[:1]:
            record.reasons.append(problem)

    def warn(self, record: Record, warning: str) -> None:
        """Add a warning about something that a user of the session should know, though nothing is broken."""
        self._warnings.append(f"line {record.number}: {warning}")

    def add_reasons(self, record: Record, reasons: Iterable[str]) -> None:
        """Add a parser's reasons for omitted parts to the record. Those that end in "damaged" mark the record as damaged."""
        for reason in reasons:
            if reason.endswith("damaged"):
                self.damage(record, reason)
            else:
                record.skip(reason)

    @contextmanager
    def guard(self, record: Record) -> Iterator[None]:
        """Mark the record as damaged if an invalid value is read inside the block, and take back the items put there."""
        start = self.mark()
        try:
            yield
        except (FormatError, RecursionError) as error:
            self.undo(start)
            self.damage(record, str(error) if isinstance(error, FormatError) else UNREADABLE)

    def mark(self) -> int:
        """Return the current end of the session, for `undo`."""
        return len(self._log)

    def undo(self, mark: int, reason: str = "") -> None:
        """Remove the items that were put since the mark.

        Args:
            mark: A result of `mark`.
            reason: Why the model no longer sees them. If empty, their records get none.
        """
        while len(self._log) > mark:
            record, group, _ = self._log.pop()
            group.pop()
            record.items.pop()
            if not record.items:
                record.fate = NOT_CONTEXT
                if reason:
                    record.skip(reason)

    def item_at(self, mark: int) -> Item | None:
        """Return the item that was put at this mark, or None if there is none or it was removed again."""
        return self._log[mark][2] if mark < len(self._log) else None

    def new_id(self, wanted: str, record: Record) -> str:
        """Return an unused item id: the wanted one, with a number if it is taken. If empty, it is made from the record's number."""
        return self._item_ids.claim(clean(wanted) or f"L{record.number}")

    def put(self, record: Record, item: Item, response: str = "") -> None:
        """Add an item.

        The first item of a response carries the model that the metadata name now, unless they name the same one at the end.

        Args:
            record: The record that the item comes from.
            item: The item, with an id from `new_id`.
            response: A name shared by all items of one response. They are grouped where the first one stands. Empty for
                items that are not part of a response.
        """
        record.fate = ITEM
        record.items.append(item)
        group = self._group_of_response.get(response) if response else None
        if group is None:
            group = []
            self._groups.append((response, group))
            if response:
                self._group_of_response[response] = group
                self._models[response] = self.metadata.get("model")
        group.append(item)
        self._log.append((record, group, item))

    def put_user(self, record: Record, content: str | Iterable[Part], file_id: str, time: float, source: str | None = None) -> None:
        """Add a message in the user's role.

        Args:
            record: The record that it comes from.
            content: Its text or parts.
            file_id: The message's id in the file; may be empty.
            time: Unix seconds.
            source: Names the subject of a text that the tool wrote, which makes the message CONTEXT. None for the user's own.
        """
        fields: dict[str, Any] = {} if source is None else {"category": MessageCategory.CONTEXT, "extra": {"source": source}}
        self.put(record, Message("user", content, id=self.new_id(file_id, record), created_at=time, **fields))

    def compact(self, record: Record, compaction: Compaction, keeps: KeepRule) -> None:
        """Add a compaction that replaces everything before it except system messages and the items it keeps.

        Args:
            record: The record that it comes from.
            compaction: The compaction, with an id from `new_id`. `session` fills in the ids that it replaces.
            keeps: The items that it does not replace.
        """
        self.put(record, compaction)
        self._compactions[compaction.id] = keeps

    def report(self, response: str, counts: Counts | None, host: str = "") -> None:
        """Store the usage reported for a response. The response's first item will carry it. A later report replaces an earlier one.

        Args:
            response: As for `put`. Empty if the usage is that of the whole session; it then goes into the metadata.
            counts: The reported tokens; None does nothing. Absurd numbers are ignored, with a warning at the latest record.
            host: Who ran the model, if a router chose among several: `extra["host"]` of that item.
        """
        if host:
            self._hosts[response] = clean(host)
        if counts is None:
            return
        try:
            usage = Usage(*counts)
        except FormatError as error:
            for record in self._records[-1:]:
                self.damage(record, f"left out the usage: {error}")
            return
        if response:
            self._usage[response] = usage
        else:
            self.metadata["usage"] = {name: count for name, count in counts._asdict().items() if name != "last_prompt"}

    def report_in_order(self, reports: Iterable[Counts]) -> None:
        """Store the usage of the responses, in their order. Does nothing unless there is one for each."""
        responses = [name for name, group in self._groups if name and group]
        counts = list(reports)
        if len(responses) == len(counts):
            for response, one in zip(responses, counts, strict=True):
                self.report(response, one)

    def session(self) -> Session:
        """Return the finished session. Call it once, after the last record."""
        replaces = self._resolve_compactions()
        problems: list[str] = []
        session = Session(id=self.id)
        session.metadata = carriable(self.metadata, "metadata", problems)
        for problem in limit_warnings(problems):
            self.add_problem(problem)
        append_items(session, self._finished_items(replaces))
        session.metadata["lines"] = dict(Counter(record.fate for record in self._records))
        session.metadata["warnings"] = limit_warnings([*self._unknown_warning(), *self._warnings])
        return session

    def _unknown_warning(self) -> Iterator[str]:
        """Yield a warning if more than a small part of the text is in records that the reader does not know."""
        unknown = [record for record in self._records if record.unknown_bytes]
        size, total = sum(record.unknown_bytes for record in unknown), sum(record.text_bytes for record in self._records)
        if size > total * UNKNOWN_SHARE:
            share = f"{len(unknown):,} of {len(self._records):,} records, with {size:,} of {total:,} bytes of text"
            first = f"line {unknown[0].number}: {'; '.join(unknown[0].reasons)}"
            yield f"not read in full: {share}, are unknown in part or whole, the first of them on {first}"

    def _finished_items(self, replaces: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Item, str]]:
        """Yield the items in session order, each with its response or an empty text."""
        for response, group in self._groups:
            usage = self._usage.get(response) if response else None
            model = self._models.get(response) if response else None
            if group and response in self._hosts:
                group[0] = replace(group[0], extra={**group[0].extra, "host": self._hosts[response]})
            for item in group:
                if isinstance(item, Compaction) and item.id in self._compactions:
                    if item.id in replaces:
                        yield replace(item, replaces=replaces[item.id]), response
                    continue
                yield attributed(item, usage, model, self.metadata.get("model")), response
                usage = model = None

    def _resolve_compactions(self) -> dict[str, tuple[str, ...]]:
        """Return the ids that each compaction replaces, by the compaction's id. Optional compactions that replace nothing are left out."""
        if not self._compactions:
            return {}
        replaces = resolve_replacements((item for _, _, item in self._log), self._compactions)
        empty = self._compactions.keys() - replaces.keys()
        for record in [record for record, _, item in self._log if item.id in empty] if empty else []:
            record.items = [item for item in record.items if item.id not in empty]
            if not record.items:
                record.fate = NOT_CONTEXT
            record.skip("a compaction that replaces nothing")
        return replaces

    def lines(self, file: str) -> Iterator[LineRecord]:
        """Yield the fate of each record, for the account."""
        for record in self._records:
            ids = tuple(item.id for item in record.items)
            yield LineRecord(
                file, record.number, record.fate, "; ".join(record.reasons), self.id, ids, record.text_bytes, record.unknown_bytes
            )


def attributed(item: Item, usage: Usage | None, model: object, session_model: object) -> Item:
    """Return the first item of a response with the reported usage, and with the model's name if it is not the session's.

    Args:
        item: The item.
        usage: The usage; None if there is none.
        model: The model that gave the response; anything but a name if it is not known.
        session_model: The model in the session's metadata: the last one.
    """
    is_other = isinstance(model, str) and model not in ("", session_model)
    if usage is None and not is_other:
        return item
    extra = {**item.extra, "model": model} if is_other else item.extra
    return replace(item, usage=item.usage if usage is None else usage, extra=extra)


def append_items(session: Session, items: Iterable[tuple[Item, str]]) -> None:
    """Append the items to an empty session, and set the breaks between responses that directly follow each other.

    Args:
        session: The session.
        items: The items, each with a name for its response. The name may be empty.
    """
    breaks: set[str] = set()
    last_response = ""
    for item, response in items:
        if is_answer(item):
            if last_response not in ("", response):
                breaks.add(item.id)
            last_response = response
        else:
            last_response = ""
        session.append(item)
    if breaks:
        session.restore_seams(frozenset(breaks), 0)


def finish(name: str, source: Source, drafts: list[Draft], *, main_count: int | None = None) -> TranscriptAccount:
    """Return the account of a file.

    Args:
        name: Name of the format.
        source: The file.
        drafts: One draft per session. Those without items are left out.
        main_count: Number of main sessions at the head of `drafts`; None if all of them are.

    Raises:
        TranscriptError: No draft has any items.
    """
    if source.problem is not None:
        next((draft for draft in drafts if draft.mark()), drafts[0]).add_problem(source.problem)
    sessions = [draft.session() for draft in drafts]
    lines = sorted((line for draft in drafts for line in draft.lines(source.name)), key=lambda line: line.line)
    sessions = [session for session in sessions if session.items]
    if not sessions:
        raise TranscriptError(source.path, "contains no messages")
    return TranscriptAccount(name, tuple(sessions), min(main_count or len(sessions), len(sessions)), tuple(lines))


def limit_warnings(warnings: Iterable[str]) -> list[str]:
    """Return the first `WARNINGS_MAX` warnings and, if there are more, a last one with their number."""
    texts = list(warnings)
    return texts if len(texts) <= WARNINGS_MAX else [*texts[:WARNINGS_MAX], f"{len(texts) - WARNINGS_MAX} more warnings"]
