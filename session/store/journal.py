"""The rows of a session's journal, and the rows that a save adds. Reading them back is `replay.py`; SQL is in `tables.py`.

A row has a kind and a body of JSON:

    session    {"id", "metadata"}               always the first row, and only there
    item       an item as `session.serial` writes it, appended to the log
    new        an item that is not in the log yet: the next edit puts it there
    edit       {"of": [items, new], "runs": [[from, to], …]}: the log now consists of these runs of positions. Positions count the
               items of the old log first, then the new items
    seams      {"breaks", "settled", …}         as in a saved session; written when they change
    metadata   the metadata; written when it changes

Example: pinning the first of two items adds `new` (its pinned twin) and `edit {"of": [2, 1], "runs": [[2, 3], [1, 2]]}`. So the
size of an edit depends on its changes, not on the length of the log.

Images are base64 inside their item, a third larger than as blobs. In exchange one row is one complete item under one checksum, in the
same form as in every saved session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

from session.errors import FormatError, short
from session.items import Item, Message, MessageCategory
from session.sanitize import clean, clean_json
from session.serial import item_to_dict
from session.session import Session
from session.session_log import recorded_total
from session.stack import with_room

SESSION, ITEM, NEW, EDIT, SEAMS, METADATA = "session", "item", "new", "edit", "seams", "metadata"
KINDS = frozenset({SESSION, ITEM, NEW, EDIT, SEAMS, METADATA})
TITLE_CHARACTERS = 80


class Row(NamedTuple):
    """One row of a journal, without its number, time and place."""

    kind: str
    body: bytes


def checksum(key: int, number: int, row: Row, at: float) -> int:
    """Return the CRC-32 of a row and of its identity: session key, number, kind and time (theory of operation, 4)."""
    return crc32(row.body, crc32(f"{key}/{number}/{row.kind}/{at!r}".encode()))


@dataclass(frozen=True, slots=True)
class SavedState:
    """The saved state of a session that is in memory.

    Attributes:
        key: The session's key in the store; 0 before the first save.
        session_id: Its id in the store.
        rows: Number of rows in its journal.
        items: The saved log. Unless edited since, these are the same objects as in the session in memory.
        lineage: `Session.lineage` when the session had these items.
        breaks: `Session.response_breaks` at that time; None if unknown.
        seams: The saved seams.
        metadata: The saved metadata, as JSON.
        title: The saved title.
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
    """The rows that a save adds, the number of items that are new or replaced, and the saved state once the rows are written."""

    rows: list[Row]
    item_count: int
    state: SavedState


def changes_since(session: Session, saved: SavedState | None) -> Change:
    """Return the rows to add for a session, None if it was never saved. If items were only appended, the cost depends on these alone.

    Raises FormatError if the metadata or an item's `extra` holds a value that JSON cannot.
    """
    items = session.items
    if not isinstance(session.metadata, Mapping):
        raise FormatError("metadata", f"expected a mapping, got {short(session.metadata)}")
    metadata = clean_json(session.metadata, "metadata")
    metadata_json = _json(metadata)
    edited = saved is not None and saved.lineage is not session.lineage
    length = 0 if saved is None else len(saved.items)
    rows, fresh = _edit_rows(session, saved) if saved is not None and edited else _item_rows(items, length)
    seams = _seams(session, None if edited else saved)
    if seams != ({} if saved is None else saved.seams):
        rows.append(Row(SEAMS, _json(seams)))
    if saved is None:
        rows.insert(0, Row(SESSION, _json({"id": clean(session.id), "metadata": metadata})))
    elif metadata_json != saved.metadata:
        rows.append(Row(METADATA, metadata_json))
    key, old_rows, title = (0, 0, "") if saved is None else (saved.key, saved.rows, saved.title)
    title = _title(metadata, fresh, title)
    breaks, lineage = session.response_breaks, session.lineage
    state = SavedState(key, clean(session.id), old_rows + len(rows), items, lineage, breaks, seams, metadata_json, title)
    return Change(rows, len(fresh), state)


def extends(session: Session, stored: Session) -> bool:
    """True if the session begins with all items of the stored one."""
    length = len(stored.items)
    return len(session.items) >= length and all(a == b for a, b in zip(session.items[:length], stored.items, strict=True))


def saved_state(session: Session, stored: Session, *, key: int, rows: int, title: str) -> SavedState:
    """Return the saved state of a session that extends the one stored under this key, with so many rows and this title."""
    return SavedState(
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


def _item_rows(items: Sequence[Item], start: int) -> tuple[list[Row], Sequence[Item]]:
    """Return a row for each item from `start` on, and those items."""
    fresh = items[start:]
    return [Row(ITEM, _item_json(item, start + index)) for index, item in enumerate(fresh)], fresh


def _edit_rows(session: Session, saved: SavedState) -> tuple[list[Row], Sequence[Item]]:
    """Return the rows of an edit, and the items that are new or replaced."""
    runs, fresh = _runs(saved.items, session.items)
    length = len(saved.items)
    if runs == ([[0, length + len(fresh)]] if length or fresh else []):  # the list object is another one, but the log only grew
        return _item_rows(session.items, length)
    rows = [Row(NEW, _item_json(item, session.position(item.id) or 0)) for item in fresh]
    return [*rows, Row(EDIT, _json({"of": [length, len(fresh)], "runs": runs}))], fresh


def _item_json(item: Item, position: int) -> bytes:
    try:
        return _json(item_to_dict(item))
    except FormatError as error:
        raise FormatError(f"items[{position}].{error.where.partition('.')[2]}", error.problem) from None


def _json(value: object) -> bytes:
    return with_room(lambda: json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))).encode()


def _runs(before: Sequence[Item], after: Sequence[Item]) -> tuple[list[list[int]], list[Item]]:
    """Return the log after an edit as runs of positions, counted over the old items and then the new ones; and the new items."""
    positions = {id(item): position for position, item in enumerate(before)}
    runs: list[list[int]] = []
    new: list[Item] = []
    for item in after:
        position = positions.get(id(item))
        if position is None:
            position = len(before) + len(new)
            new.append(item)
        if runs and runs[-1][1] == position:
            runs[-1][1] += 1
        else:
            runs.append([position, position + 1])
    return runs, new


def _seams(session: Session, saved: SavedState | None) -> dict[str, Any]:
    """Return the fields of a saved session besides id, metadata and items: see `session.serial`."""
    breaks = session.response_breaks
    if saved is not None and breaks is saved.breaks:
        break_ids = saved.seams.get("breaks", [])
    else:
        break_ids = sorted(item_id for item_id in breaks if session.position(item_id) is not None)
    seams: dict[str, Any] = {"breaks": break_ids} if break_ids else {}
    if ends := sorted(item_id for item_id in session.request_ends if session.position(item_id) is not None):
        seams["ends"] = ends
    if session.settled:
        seams["settled"] = min(session.settled, len(session.items))
    if (tokens := recorded_total(session)) is not None:
        seams["settled_tokens"] = tokens
    return seams


def _title(metadata: dict[str, Any], fresh: Sequence[Item], saved_title: str) -> str:
    """Return `metadata["title"]`, else the saved title, else how the first user message begins."""
    title = metadata.get("title")
    if isinstance(title, str) and title.strip():
        return _one_line(title)
    if saved_title:
        return saved_title
    for item in fresh:
        if isinstance(item, Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT:
            title = _one_line(item.text)
            if title:
                return title
    return ""


def _one_line(text: str) -> str:
    line = " ".join(text.lstrip()[: 4 * TITLE_CHARACTERS].split())
    return line if len(line) <= TITLE_CHARACTERS else f"{line[: TITLE_CHARACTERS - 1]}…"
