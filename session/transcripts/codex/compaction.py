"""Compactions in a Codex log: which earlier items the model still saw after one, and which a summary replaces.

1. A compaction keeps the items that its replacement history repeats. Without a history, as older versions wrote it, it keeps
   the latest prompts and the repeated context. Everything else is replaced; `compactions.py` works out the ids when the whole
   log is read. A summary that OpenAI encrypted is sent back to it, as the compactions of `native_compaction.py` are.
2. Whether the model still sees an item depends on the last compaction. If that one has no history, it also depends on the
   last one that has a history (the base). Prompts are dropped oldest first, so the prompts that the last compaction keeps
   were kept by all those since the base.
3. A history names items by their content. Among equal items the latest are meant, and the oldest are dropped first. So either
   the nth item from the end is still visible, or fewer than n are.
4. A rollback removes items from the end. Compactions and items that it removed are forgotten here when they are next met.

No step looks at the whole log, so a log with many compactions takes as long as any other of its size.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from session.items import Compaction, Item, MessageCategory
from session.parts import Text
from session.providers.native_compaction import SEALED
from session.providers.openai_responses.item_kinds import ITEM
from session.transcripts.compactions import KeepRule, is_prompt, is_repeated_context, text_length
from session.transcripts.draft import Draft
from session.transcripts.record import Record
from session.transcripts.values import JsonObject, id_at, json_text, text_at

from .content import parts_of

PROMPT_CHARS = 80_000
"""Characters of user messages that older versions kept at a compaction: 20,000 tokens at four characters each."""

_CONTENT_FIELDS = ("role", "content", "call_id", "output", "encrypted_content")


@dataclass(slots=True)
class _CodexCompaction:
    """A compaction in the log.

    Attributes:
        mark: Its mark in the draft.
        item: The compaction.
        keeps: The items that it does not replace.
        kept_marks: The marks of the items that it keeps by id, in order, without those that it keeps for another reason.
        base: The last compaction with a history before it, or None.
        first_prompt: The mark of the oldest prompt that it keeps without a history; None until it is computed.
    """

    mark: int
    item: Item
    keeps: KeepRule
    kept_marks: Sequence[int]
    base: _CodexCompaction | None
    first_prompt: int | None = None


class CompactionReader:
    """Puts compactions into a draft, and recognizes response items that a replacement history repeats."""

    def __init__(self) -> None:
        self._originals: dict[bytes, list[tuple[int, tuple[Item, ...]]]] = {}  # by fingerprint: a mark, and the items put there
        self._cuts: list[_CodexCompaction] = []

    def remember(self, draft: Draft, payload: JsonObject, items: Sequence[Item]) -> None:
        """Remember the items of a response item, which were the last to be put into the draft."""
        if items:
            self._live_originals(draft, _fingerprint(payload)).append((draft.mark() - len(items), tuple(items)))

    def read_compacted(
        self, draft: Draft, record: Record, payload: JsonObject, time: float, read_item: Callable[[JsonObject], None]
    ) -> None:
        """Read a `compacted` line: put the compaction, and the entries of its replacement history that are new.

        Earlier items that the history repeats stay where they are.

        Args:
            draft: The session so far.
            record: The record of the line.
            payload: The payload of the line.
            time: Unix seconds, for the summary.
            read_item: Puts a response item into the draft.
        """
        message, history = text_at(payload, "message"), payload.get("replacement_history")
        if not isinstance(history, list):
            self.put_compaction(draft, record, message, {}, None, time)
            return
        kept_marks, repeated_indices = self._find_repeated(draft, history)
        is_put = False
        for index, entry in enumerate(history):
            if not isinstance(entry, dict):
                draft.damage(record, "an entry of the replacement history is not an object")
            elif text_at(entry, "type").startswith("compaction") or _is_summary(entry, message):
                self.put_compaction(draft, record, message, entry, kept_marks, time)
                is_put = True
            elif index not in repeated_indices:
                read_item(entry)
        if not is_put:
            self.put_compaction(draft, record, message, {}, kept_marks, time)

    def put_compaction(
        self, draft: Draft, record: Record, summary: str, sealed_item: JsonObject, kept_marks: dict[str, int] | None, time: float
    ) -> None:
        """Put a compaction that replaces everything the model saw, except system messages and kept items.

        Args:
            draft: The session so far.
            record: The record of the compaction. Items that it put earlier stay too.
            summary: The text of the summary; empty if it is encrypted.
            sealed_item: The response item with the encrypted summary, or an empty object.
            kept_marks: Marks of the items that the model still sees, by item id. None if it still sees the latest prompts and the
                repeated context.
            time: Unix seconds.
        """
        data = id_at(sealed_item, "encrypted_content")
        extra: JsonObject = {"source": "compaction"}
        if data:  # without the id, under which OpenAI stored nothing
            extra[ITEM] = {"type": "compaction", "encrypted_content": data}
        text = summary or (SEALED if text_at(sealed_item, "encrypted_content") else "")
        item = Compaction(text, extra=extra, id=draft.new_id(id_at(sealed_item, "id"), record), created_at=time)
        start = draft.mark() - len(record.items)
        prompt_chars = PROMPT_CHARS if kept_marks is None else None
        keeps = KeepRule(start, frozenset(kept_marks or ()), prompt_chars, is_optional=not (summary or data))
        last = self._last_cut(draft)
        base = last if last is None or last.keeps.prompt_chars is None else last.base
        self._cuts.append(
            _CodexCompaction(draft.mark(), item, keeps, sorted(mark for mark in (kept_marks or {}).values() if mark < start), base)
        )
        draft.compact(record, item, keeps)

    def _find_repeated(self, draft: Draft, history: list[object]) -> tuple[dict[str, int], set[int]]:
        """Return the marks of visible items that the history repeats, by item id, and the indices in the history that repeat them."""
        counts: Counter[bytes] = Counter()
        kept_marks: dict[str, int] = {}
        indices: set[int] = set()
        for index, entry in enumerate(history):
            fingerprint = _fingerprint(entry) if isinstance(entry, dict) else b""
            counts[fingerprint] += 1
            originals = self._live_originals(draft, fingerprint)
            if counts[fingerprint] <= len(originals):
                first_mark, items = originals[-counts[fingerprint]]
                marks = {item.id: first_mark + offset for offset, item in enumerate(items)}
                if all(self._is_visible(draft, marks[item.id], item) for item in items):
                    kept_marks |= marks
                    indices.add(index)
        return kept_marks, indices

    def _live_originals(self, draft: Draft, fingerprint: bytes) -> list[tuple[int, tuple[Item, ...]]]:
        """Return the items with this content that are still in the draft."""
        originals = self._originals.setdefault(fingerprint, [])
        while originals and draft.item_at(originals[-1][0]) is not originals[-1][1][0]:
            originals.pop()
        return originals

    def _last_cut(self, draft: Draft) -> _CodexCompaction | None:
        while self._cuts and draft.item_at(self._cuts[-1].mark) is not self._cuts[-1].item:
            self._cuts.pop()
        return self._cuts[-1] if self._cuts else None

    def _is_visible(self, draft: Draft, mark: int, item: Item) -> bool:
        """Return True if the model still sees the item."""
        cut = self._last_cut(draft)
        if cut is None or mark >= cut.keeps.start or item.category is MessageCategory.SYSTEM:
            return True
        if cut.keeps.prompt_chars is not None:
            if not (is_repeated_context(item) or (is_prompt(item) and mark >= _first_prompt(draft, cut))):
                return False
            cut = cut.base
        return cut is None or mark >= cut.keeps.start or item.id in cut.keeps.ids


def _first_prompt(draft: Draft, cut: _CodexCompaction) -> int:
    """Return the mark of the oldest prompt that a compaction without a history keeps."""
    if cut.first_prompt is None:
        chars, cut.first_prompt = 0, cut.mark
        base_marks = cut.base.kept_marks if cut.base is not None else ()
        later_marks = range(0 if cut.base is None else cut.base.keeps.start, cut.mark)
        for mark in reversed([*base_marks, *later_marks]):
            item = draft.item_at(mark)
            if item is None or not is_prompt(item):
                continue
            chars += text_length(item)
            if chars > PROMPT_CHARS:
                break
            cut.first_prompt = mark
    return cut.first_prompt


def _is_summary(entry: JsonObject, summary: str) -> bool:
    """Return True if the entry is the message with the summary."""
    if not summary or text_at(entry, "type") != "message":
        return False
    text = "\n".join(part.text for part in parts_of(entry.get("content"), []) if isinstance(part, Text))
    return text.endswith(summary)


def _fingerprint(payload: JsonObject) -> bytes:
    """Return a hash of the fields in which a response item and its copy agree."""
    content = {name: payload.get(name) for name in _CONTENT_FIELDS if payload.get(name) is not None}
    return hashlib.sha256(json_text([payload.get("type"), content]).encode("utf-8", "surrogatepass")).digest()
