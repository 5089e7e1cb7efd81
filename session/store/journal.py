"""What a session's journal says, and the rows for what is new in a session. The way back is `replay.py`. No file, no SQLite.

A row has a kind and a body of JSON:

    session    {"id", "metadata"}               the first row, and no other
    item       an item, as `session.serial` has it: appended to the log
    new        likewise, but not yet in the log: it waits for the edit that follows
    edit       {"of": [items, waiting], "runs": [[from, to], …]}: the log is now these runs of the log and the waiting items
    seams      {"breaks", "settled", …}         those of a saved session, where they changed
    metadata   the metadata, where it changed

So an edit costs what it moved, and what it replaced stays readable: a *revision* is the log up to an edit, or up to the end.
Images are base64 in their item, a third larger than as blobs: one row is one item whole, with one checksum over it, in the one form
that saved sessions have everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

from session.door import clean, clean_json
from session.errors import FormatError, short
from session.items import Item, Message, MessageCategory
from session.serial import item_to_dict
from session.session import Session
from session.stack import with_room

SESSION, ITEM, NEW, EDIT, SEAMS, METADATA = "session", "item", "new", "edit", "seams", "metadata"
KINDS = frozenset({SESSION, ITEM, NEW, EDIT, SEAMS, METADATA})
TITLE_CHARACTERS = 80


class Row(NamedTuple):
    """One row of a journal, without its place in the file."""

    kind: str
    body: bytes


def checksum(key: int, number: int, row: Row, at: float) -> int:
    """A checksum over all that a row holds, and over whose row it is."""
    return crc32(row.body, crc32(f"{key}/{number}/{row.kind}/{at!r}".encode()))


@dataclass(frozen=True, slots=True)
class Known:
    """What the file holds of a session in memory.

    Attributes:
        key: The session's in the file.
        session_id: Its id there.
        rows: How many its journal has.
        items: Its log: objects that are in the session in memory too, unless they were edited.
        lineage: That of the session in memory when it had these items.
        breaks: Its `response_breaks` then; None where they were not looked at.
        seams: As they were saved.
        metadata: As it was saved.
        title: As it was saved.
    """

    key: int
    session_id: str
    rows: int
    items: Sequence[Item]
    lineage: object
    breaks: frozenset[str] | None
    seams: dict[str, Any]
    metadata: bytes
    title: str


@dataclass(frozen=True, slots=True)
class Change:
    """What is new in a session since it was saved.

    Attributes:
        rows: To be added to its journal.
        added: How many items are new or have taken another's place.
        now: What the file holds once they are in it; `key` is that of `known`, or 0 where nothing was saved.
    """

    rows: list[Row]
    added: int
    now: Known


def change(session: Session, known: Known | None) -> Change:
    """What is new in the session. Where it only grew, that costs what is new and no more.

    Args:
        session: The session now.
        known: What is saved of it; None where nothing is.

    Raises:
        FormatError: Its id is no text, or `metadata` or an item's `extra` was given a value that JSON cannot hold.
    """
    items = session.items
    if not isinstance(session.metadata, Mapping):
        raise FormatError("metadata", f"{short(session.metadata)} where a mapping is expected")
    metadata = clean_json(session.metadata, "metadata")
    said = _json(metadata)
    edited = known is not None and known.lineage is not session.lineage
    rows, fresh = _edited(session, known) if known is not None and edited else _grown(items, 0 if known is None else len(known.items))
    seams = _seams(session, None if edited else known)
    if seams != ({} if known is None else known.seams):
        rows.append(Row(SEAMS, _json(seams)))
    if known is None:
        rows.insert(0, Row(SESSION, _json({"id": clean(session.id), "metadata": metadata})))
    elif said != known.metadata:
        rows.append(Row(METADATA, said))
    key, before, title = (0, 0, "") if known is None else (known.key, known.rows, known.title)
    title = _title(metadata, fresh, title)
    breaks, lineage = session.response_breaks, session.lineage
    return Change(rows, len(fresh), Known(key, clean(session.id), before + len(rows), items, lineage, breaks, seams, said, title))


def _grown(items: Sequence[Item], start: int) -> tuple[list[Row], Sequence[Item]]:
    fresh = items[start:]
    return [Row(ITEM, _item(item, start + place)) for place, item in enumerate(fresh)], fresh


def _edited(session: Session, known: Known) -> tuple[list[Row], Sequence[Item]]:
    runs, fresh = _runs(known.items, session.items)
    length = len(known.items)
    if runs == ([[0, length + len(fresh)]] if length or fresh else []):  # a list of its own, and yet nothing but growth
        return _grown(session.items, length)
    rows = [Row(NEW, _item(item, session.position(item.id) or 0)) for item in fresh]
    return [*rows, Row(EDIT, _json({"of": [length, len(fresh)], "runs": runs}))], fresh


def goes_on_from(session: Session, stored: Session) -> bool:
    """Whether the session goes on from the stored one: it begins with the same items."""
    length = len(stored.items)
    return len(session.items) >= length and all(mine == theirs for mine, theirs in zip(session.items[:length], stored.items, strict=True))


def known_of(session: Session, stored: Session, *, key: int, rows: int, title: str) -> Known:
    """What the file holds of a session that goes on from what is stored there."""
    return Known(
        key,
        stored.id,
        rows,
        session.items[: len(stored.items)],
        session.lineage,
        None,
        _seams(stored, None),
        _json(clean_json(stored.metadata, "metadata")),
        title,
    )


def _item(item: Item, place: int) -> bytes:
    try:
        return _json(item_to_dict(item))
    except FormatError as error:
        raise FormatError(f"items[{place}].{error.where.partition('.')[2]}", error.problem) from None


def _json(value: object) -> bytes:
    return with_room(lambda: json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))).encode()


def _runs(before: Sequence[Item], now: Sequence[Item]) -> tuple[list[list[int]], list[Item]]:
    """Which runs of the items before, and of new ones behind them, make the items now; and the new ones."""
    places = {id(item): place for place, item in enumerate(before)}
    runs: list[list[int]] = []
    new: list[Item] = []
    for item in now:
        place = places.get(id(item))
        if place is None:
            place = len(before) + len(new)
            new.append(item)
        if runs and runs[-1][1] == place:
            runs[-1][1] += 1
        else:
            runs.append([place, place + 1])
    return runs, new


def _seams(session: Session, known: Known | None) -> dict[str, Any]:
    """What a saved session has beside its items: see `session.serial`."""
    breaks = session.response_breaks
    if known is not None and breaks is known.breaks:
        found = known.seams.get("breaks", [])
    else:
        found = sorted(one for one in breaks if session.position(one) is not None)
    seams: dict[str, Any] = {"breaks": found} if found else {}
    if session.settled:
        seams["settled"] = min(session.settled, len(session.items))
    if session.settled_tokens is not None:
        seams["settled_tokens"] = session.settled_tokens
    return seams


def _title(metadata: dict[str, Any], fresh: Sequence[Item], known: str) -> str:
    given = metadata.get("title")
    if isinstance(given, str) and given.strip():
        return _line(given)
    if known:
        return known
    for item in fresh:
        if isinstance(item, Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT:
            title = _line(item.text)
            if title:
                return title
    return ""


def _line(text: str) -> str:
    line = " ".join(text.lstrip()[: 4 * TITLE_CHARACTERS].split())
    return line if len(line) <= TITLE_CHARACTERS else f"{line[: TITLE_CHARACTERS - 1]}…"
