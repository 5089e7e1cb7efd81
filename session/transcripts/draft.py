"""A session under construction, record by record: what all readers do alike but Claude Code's, which has trees to climb.

Ids are made unique here, the items of one response are put together, and each record's fate is written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from session.door import clean
from session.errors import FormatError, TranscriptError
from session.items import Compaction, Item
from session.session import Session
from session.units import is_answer
from session.usage import Usage

from .account import DAMAGED, ITEM, MERGED, NOT_CONTEXT, Fate, LineRecord, TranscriptAccount, shortened
from .replacing import Keeps, replaced
from .source import Source
from .usages import Counts
from .values import carriable


@dataclass(slots=True)
class Record:
    """One record of the file: a line, or an entry of its document.

    Attributes:
        place: Its line or its place in the document, counted from 1.
        fate: What became of it.
        reasons: Why, and what was left out.
        items: What it gave.
    """

    place: int
    fate: Fate = NOT_CONTEXT
    reasons: list[str] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)

    def skip(self, reason: str) -> None:
        """The model was never shown it, for this reason."""
        self.reasons.append(reason)

    def merge(self, reason: str) -> None:
        """What it says is in another record's item."""
        if self.fate is NOT_CONTEXT:
            self.fate = MERGED
        self.reasons.append(reason)


class Draft:
    """A session that grows record by record.

        draft = Draft(NAME, source, "5d1c")
        record = draft.record(1)
        draft.put(record, Message("user", "hi", id=draft.new_id("m1", record)))
        account = finish(NAME, source, [draft])

    Attributes:
        id: The session's.
        metadata: The session's; `source`, `warnings` and `lines` are filled in at the end.
    """

    def __init__(self, name: str, source: Source, session_id: str, metadata: Mapping[str, Any] | None = None) -> None:
        """
        Args:
            name: Of the format.
            source: The file.
            session_id: As the file has it, else something that tells this session from the others in it.
            metadata: JSON values to carry along.
        """
        self.id = clean(session_id)
        self.metadata: dict[str, Any] = {"source": {"format": name, "path": source.name}, **(metadata or {})}
        self._records: list[Record] = []
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._runs: list[tuple[str, list[Item]]] = []  # in order: the response, or an empty text, and its items
        self._by_response: dict[str, list[Item]] = {}
        self._usage: dict[str, Usage] = {}
        self._warnings: list[str] = []
        self._order: list[tuple[Record, list[Item], Item]] = []  # the items as they were put, each with its record and its run
        self._compactions: dict[str, Keeps] = {}  # by id: those whose `replaces` is settled at the end

    def record(self, place: int) -> Record:
        """A new record, which is not context until it is said to be something else."""
        record = Record(place)
        self._records.append(record)
        return record

    def damage(self, record: Record, problem: str) -> None:
        """The record, or a part of it, cannot be read: a warning of the session."""
        if record.fate is NOT_CONTEXT:
            record.fate = DAMAGED
        record.reasons.append(problem)
        self.warn(record, problem)

    def note_problem(self, problem: str) -> None:
        """Something beside the records could not be read: a warning of the session, which the first record repeats."""
        self._warnings.append(problem)
        for record in self._records[:1]:
            record.reasons.append(problem)

    def warn(self, record: Record, warning: str) -> None:
        """Something that a user of the session should know, though nothing is broken."""
        self._warnings.append(f"line {record.place}: {warning}")

    @contextmanager
    def guard(self, record: Record) -> Iterator[None]:
        """Whatever is wrong with the values read inside costs them only: their items are taken back, and the record is damaged."""
        before = self.mark()
        try:
            yield
        except FormatError as error:
            self.undo(before)
            self.damage(record, str(error))
        except RecursionError:
            self.undo(before)
            self.damage(record, "nested too deeply to be read")

    def mark(self) -> int:
        """The place in the session that `undo` goes back to."""
        return len(self._order)

    def undo(self, mark: int, reason: str = "") -> None:
        """Takes out the items that were put since the mark.

        Args:
            mark: From `mark`.
            reason: Why the model sees them no more. Where there is none, nothing is written down.
        """
        while len(self._order) > mark:
            record, run, _ = self._order.pop()
            run.pop()
            record.items.pop()
            if not record.items:
                record.fate = NOT_CONTEXT
                if reason:
                    record.skip(reason)

    def item_at(self, mark: int) -> Item | None:
        """Return the item that was put at this mark, or None if none was or it was taken out again."""
        return self._order[mark][2] if mark < len(self._order) else None

    def new_id(self, wanted: str, record: Record) -> str:
        """An item id that nobody has yet: the one wanted, or one made from it; from the record's place where none is wanted."""
        base = found = clean(wanted) or f"L{record.place}"
        number = self._numbers.get(base, 1)  # the last one in use: a file may have one id for everything
        while found in self._taken:
            number += 1
            found = f"{base}.{number}"
        self._numbers[base] = number
        self._taken.add(found)
        return found

    def put(self, record: Record, item: Item, response: str = "") -> None:
        """Adds an item.

        Args:
            record: Where it comes from.
            item: With an id from `new_id`.
            response: What all items of one answer of the model share: they come to stand together, where its first one
                stands. Empty for what is no answer.
        """
        record.fate = ITEM
        record.items.append(item)
        run = self._by_response.get(response) if response else None
        if run is None:
            run = []
            self._runs.append((response, run))
            if response:
                self._by_response[response] = run
        run.append(item)
        self._order.append((record, run, item))

    def compact(self, record: Record, compaction: Compaction, keeps: Keeps) -> None:
        """Add a compaction that replaces all that stands before it but system messages and what it keeps.

        Args:
            record: Where it comes from.
            compaction: With an id from `new_id`. The ids that it replaces are filled in by `session`.
            keeps: What it leaves as it is.
        """
        self.put(record, compaction)
        self._compactions[compaction.id] = keeps

    def report(self, response: str, counts: Counts | None) -> None:
        """Takes what the provider reported for a response: its first item will carry it. A later report replaces an earlier one.

        Args:
            response: As for `put`. Empty for the whole session, whose metadata will carry it.
            counts: None where nothing was reported. Absurd numbers are a problem of the latest record, and cost the report only.
        """
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
            self.metadata["usage"] = counts._asdict()

    def session(self) -> Session:
        """The session, once all records are in."""
        replaces = self._settled()
        problems: list[str] = []
        session = Session(id=self.id)
        session.metadata = carriable(self.metadata, "metadata", problems)
        for problem in shortened(problems):
            self.note_problem(problem)
        breaks: set[str] = set()
        last = ""
        for response, run in self._runs:
            usage = self._usage.get(response) if response else None
            for put in run:
                item = put
                if isinstance(item, Compaction) and item.id in self._compactions:
                    if item.id not in replaces:
                        continue
                    item = replace(item, replaces=replaces[item.id])
                if is_answer(item):
                    if last not in ("", response):
                        breaks.add(item.id)
                    last = response
                else:
                    last = ""
                session.append(item if usage is None else replace(item, usage=usage))
                usage = None
        if breaks:
            session.restore_seams(frozenset(breaks), 0)
        counts: dict[str, int] = {}
        for record in self._records:
            counts[record.fate] = counts.get(record.fate, 0) + 1
        session.metadata["lines"] = counts
        session.metadata["warnings"] = shortened(self._warnings)
        return session

    def _settled(self) -> dict[str, tuple[str, ...]]:
        """Return what each compaction replaces, by its id, without those that were left out since they replace nothing."""
        if not self._compactions:
            return {}
        replaces = replaced((item for _, _, item in self._order), self._compactions)
        empty = self._compactions.keys() - replaces.keys()
        for record in [record for record, _, item in self._order if item.id in empty] if empty else []:
            record.items = [item for item in record.items if item.id not in empty]
            if not record.items:
                record.fate = NOT_CONTEXT
            record.skip("a compaction of nothing")
        return replaces

    def lines(self, file: str) -> Iterable[LineRecord]:
        """What became of each record."""
        for record in self._records:
            ids = tuple(item.id for item in record.items)
            yield LineRecord(file, record.place, record.fate, "; ".join(record.reasons), self.id, ids)


def finish(name: str, source: Source, drafts: list[Draft], *, equals: int | None = None) -> TranscriptAccount:
    """The account of a file.

    Args:
        name: Of the format.
        source: The file.
        drafts: One a session; those without items are left out, unless all are.
        equals: How many at the head have the same right to be the main one; all where not given.

    Raises:
        TranscriptError: Nobody says anything in the file.
    """
    if source.problem is not None:
        next((draft for draft in drafts if draft.mark()), drafts[0]).note_problem(source.problem)
    made = [(draft, draft.session()) for draft in drafts]
    told = [(draft, session) for draft, session in made if session.items]
    if not told:
        raise TranscriptError(source.path, "nobody says anything in it")
    lines = sorted((line for draft, _ in made for line in draft.lines(source.name)), key=lambda line: line.line)
    return TranscriptAccount(name, tuple(session for _, session in told), min(equals or len(told), len(told)), tuple(lines))
