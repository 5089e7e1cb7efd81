"""Compactions in a Codex log: what of the session so far the model still saw after one, and what a summary stands for.

1. A compaction keeps what its replacement history repeats. Without a history, as older versions wrote it, it keeps the latest
   prompts and the repeated context. Everything else is replaced; `replacing.py` says what that is when the log is read.
2. Whether an item is still shown depends on the last compaction. If that one has no history, it depends also on the last one
   that has (the base): of prompts the oldest leave first, so those that the last compaction keeps were kept by all since then.
3. A history names items by their content. Of equal items the latest are meant, and of equal items the oldest leave first.
   So the nth from the end is shown, or fewer than n are.
4. A rollback takes items off the end. Compactions and copies that it took off are removed here when they are next met.

No step looks at the log as a whole, so a log of many compactions takes as long as any other of its size.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from session.items import Compaction, Item, MessageCategory
from session.parts import Text
from session.transcripts.draft import Draft, Record
from session.transcripts.replacing import Keeps, is_prompt, is_repeated, letters_of
from session.transcripts.values import JsonObject, id_at, json_text, text_at

from .content import parts_of

SEALED = "(The summary of the conversation up to here is encrypted: only the provider can read it.)"
"""The text of a compaction whose summary nobody but the provider can read. The payload is in `extra["data"]`."""

KEPT_LETTERS = 80_000
"""Characters of users' messages that older versions kept at a compaction: 20,000 tokens at four a token."""

_TELLING = ("role", "content", "call_id", "output", "encrypted_content")


@dataclass(slots=True)
class _Cut:
    """A compaction in the log.

    Attributes:
        mark: Its mark in the draft.
        item: The compaction.
        keeps: What it leaves as it is.
        kept: The marks of what it keeps by id, in order, without what stays for another reason.
        base: The last compaction with a history before it; None if there is none.
        first_prompt: The mark of the oldest prompt that it keeps without a history; None until somebody asks.
    """

    mark: int
    item: Item
    keeps: Keeps
    kept: Sequence[int]
    base: _Cut | None
    first_prompt: int | None = None


class Copies:
    """Knows the response items of a log again when a replacement history repeats them."""

    def __init__(self) -> None:
        self._items: dict[bytes, list[tuple[int, tuple[Item, ...]]]] = {}  # by what copies have in common: the mark, and the items
        self._cuts: list[_Cut] = []

    def note(self, draft: Draft, payload: JsonObject, items: Sequence[Item]) -> None:
        """Remember the items of a response item, which were put into the draft last."""
        if items:
            self._copies(draft, _mark(payload)).append((draft.mark() - len(items), tuple(items)))

    def compacted(self, draft: Draft, record: Record, payload: JsonObject, time: float, read: Callable[[JsonObject], None]) -> None:
        """From here on the model saw a summary, and what the replacement history has besides.

        What was said before and is in that history stays where it is. What is only there comes at its place.

        Args:
            draft: The session so far.
            record: Of the compaction.
            payload: What the log says of it.
            time: Unix seconds, for the summary.
            read: Puts a response item into the draft.
        """
        message, history = text_at(payload, "message"), payload.get("replacement_history")
        if not isinstance(history, list):
            self.compact(draft, record, message, {}, None, time)
            return
        kept, repeated = self._repeated(draft, history)
        is_written = False
        for place, entry in enumerate(history):
            if not isinstance(entry, dict):
                draft.damage(record, "an entry of the replacement history is no object")
            elif text_at(entry, "type").startswith("compaction") or _says(entry, message):
                self.compact(draft, record, message, entry, kept, time)
                is_written = True
            elif place not in repeated:
                read(entry)
        if not is_written:
            self.compact(draft, record, message, {}, kept, time)

    def compact(self, draft: Draft, record: Record, summary: str, sealed: JsonObject, kept: dict[str, int] | None, time: float) -> None:
        """Put a compaction that replaces all that the model was shown, but system messages and what is kept.

        Args:
            draft: The session so far.
            record: Of the compaction: what it gave before stays too.
            summary: Its text, where it can be read.
            sealed: The response item with the encrypted summary, or an empty object.
            kept: The items that the model still sees: their ids and marks. None for the latest prompts and repeated context.
            time: Unix seconds.
        """
        data = id_at(sealed, "encrypted_content")
        extra = {"source": "compaction", **({"provider": "openai", "data": data} if data else {})}
        text = summary or (SEALED if text_at(sealed, "encrypted_content") else "")
        item = Compaction(text, extra=extra, id=draft.new_id(id_at(sealed, "id"), record), created_at=time)
        start = draft.mark() - len(record.items)
        letters = KEPT_LETTERS if kept is None else None
        keeps = Keeps(start, frozenset(kept or ()), letters, is_optional=not (summary or data))
        last = self._last_cut(draft)
        base = last if last is None or last.keeps.letters is None else last.base
        self._cuts.append(_Cut(draft.mark(), item, keeps, sorted(mark for mark in (kept or {}).values() if mark < start), base))
        draft.compact(record, item, keeps)

    def _repeated(self, draft: Draft, history: list[object]) -> tuple[dict[str, int], set[int]]:
        """Return the ids and marks of shown items that the history repeats, and the places in the history where it does."""
        times: Counter[bytes] = Counter()
        kept: dict[str, int] = {}
        places: set[int] = set()
        for place, entry in enumerate(history):
            mark = _mark(entry) if isinstance(entry, dict) else b""
            times[mark] += 1
            copies = self._copies(draft, mark)
            if times[mark] <= len(copies):
                first, items = copies[-times[mark]]
                marks = {item.id: first + number for number, item in enumerate(items)}
                if all(self._is_shown(draft, marks[item.id], item) for item in items):
                    kept |= marks
                    places.add(place)
        return kept, places

    def _copies(self, draft: Draft, mark: bytes) -> list[tuple[int, tuple[Item, ...]]]:
        """Return the items with this content, those that stand in the draft."""
        copies = self._items.setdefault(mark, [])
        while copies and draft.item_at(copies[-1][0]) is not copies[-1][1][0]:
            copies.pop()
        return copies

    def _last_cut(self, draft: Draft) -> _Cut | None:
        while self._cuts and draft.item_at(self._cuts[-1].mark) is not self._cuts[-1].item:
            self._cuts.pop()
        return self._cuts[-1] if self._cuts else None

    def _is_shown(self, draft: Draft, mark: int, item: Item) -> bool:
        """True if the model still sees the item."""
        cut = self._last_cut(draft)
        if cut is None or mark >= cut.keeps.start or item.category is MessageCategory.SYSTEM:
            return True
        if cut.keeps.letters is not None:
            if not (is_repeated(item) or (is_prompt(item) and mark >= _first_prompt(draft, cut))):
                return False
            cut = cut.base
        return cut is None or mark >= cut.keeps.start or item.id in cut.keeps.ids


def _first_prompt(draft: Draft, cut: _Cut) -> int:
    """Return the mark of the oldest prompt that a compaction without a history keeps."""
    if cut.first_prompt is None:
        letters, cut.first_prompt = 0, cut.mark
        marks = [*(cut.base.kept if cut.base is not None else ()), *range(0 if cut.base is None else cut.base.keeps.start, cut.mark)]
        for mark in reversed(marks):
            item = draft.item_at(mark)
            if item is None or not is_prompt(item):
                continue
            letters += letters_of(item)
            if letters > KEPT_LETTERS:
                break
            cut.first_prompt = mark
    return cut.first_prompt


def _says(entry: JsonObject, summary: str) -> bool:
    """Whether the entry is the message with the summary."""
    if not summary or text_at(entry, "type") != "message":
        return False
    text = "\n".join(part.text for part in parts_of(entry.get("content"), []) if isinstance(part, Text))
    return text.endswith(summary)


def _mark(payload: JsonObject) -> bytes:
    """What a response item and its copy have in common; other fields come and go."""
    told = {name: payload.get(name) for name in _TELLING if payload.get(name) is not None}
    return hashlib.sha256(json_text([payload.get("type"), told]).encode("utf-8", "surrogatepass")).digest()
