"""Compactions in a Codex log: what of the session so far the model still saw after one, and what a summary stands for."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable

from session.items import Compaction, Item, Message, MessageCategory
from session.parts import Text
from session.transcripts.draft import Draft, Record
from session.transcripts.values import JsonObject, id_at, json_text, text_at

from .content import parts_of

SEALED = "(The summary of the conversation up to here is encrypted: only the provider can read it.)"
"""The text of a compaction whose summary nobody but the provider can read. The payload is in `extra["data"]`."""

KEPT_LETTERS = 80_000
"""Characters of users' messages that older versions kept at a compaction: 20,000 tokens at four a token."""

_TELLING = ("role", "content", "call_id", "output", "encrypted_content")


class Copies:
    """Knows the response items of a log again when a replacement history repeats them."""

    def __init__(self) -> None:
        self._ids: dict[bytes, list[tuple[str, ...]]] = {}

    def note(self, payload: JsonObject, items: Iterable[Item]) -> None:
        """The response item gave these items."""
        if ids := tuple(item.id for item in items):
            self._ids.setdefault(_mark(payload), []).append(ids)

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
            compact(draft, record, message, {}, _latest_prompts(draft), time)
            return
        kept, repeated = self._known(draft, history)
        done = False
        for place, entry in enumerate(history):
            if not isinstance(entry, dict):
                draft.damage(record, "an entry of the replacement history is no object")
            elif text_at(entry, "type").startswith("compaction") or _says(entry, message):
                compact(draft, record, message, entry, kept, time)
                done = True
            elif place not in repeated:
                read(entry)
        if not done:
            compact(draft, record, message, {}, kept, time)

    def _known(self, draft: Draft, history: list[object]) -> tuple[set[str], set[int]]:
        """The ids of items that the history repeats, and the places where it does."""
        shown = {item.id for item in _shown(draft)}
        seen: Counter[bytes] = Counter()
        kept: set[str] = set()
        places: set[int] = set()
        for place, entry in enumerate(history):
            mark = _mark(entry) if isinstance(entry, dict) else b""
            found = [ids for ids in self._ids.get(mark, ()) if shown.issuperset(ids)]
            seen[mark] += 1
            if seen[mark] <= len(found):
                kept.update(found[-seen[mark]])
                places.add(place)
        return kept, places


def compact(draft: Draft, record: Record, summary: str, sealed: JsonObject, kept: set[str], time: float) -> None:
    """Puts a compaction that replaces all that the model was shown, but system messages and what is kept.

    Args:
        draft: The session so far.
        record: Of the compaction: what it gave before stays too.
        summary: Its text, where it can be read.
        sealed: The response item with the encrypted summary, or an empty object.
        kept: Ids of items that the model still sees.
        time: Unix seconds.
    """
    stays = kept.union(item.id for item in record.items)
    replaces = [item.id for item in _shown(draft) if item.category is not MessageCategory.SYSTEM and item.id not in stays]
    data = id_at(sealed, "encrypted_content")
    if not (replaces or summary or data):
        record.skip("a compaction of nothing")
        return
    extra = {"source": "compaction", **({"provider": "openai", "data": data} if data else {})}
    text = summary or (SEALED if text_at(sealed, "encrypted_content") else "")
    draft.put(record, Compaction(text, replaces, extra=extra, id=draft.new_id(id_at(sealed, "id"), record), created_at=time))


def _shown(draft: Draft) -> list[Item]:
    """What the model sees of the session so far."""
    standing = [item for _, item in draft.standing()]
    gone = {replaced for item in standing if isinstance(item, Compaction) for replaced in item.replaces}
    return [item for item in standing if item.id not in gone]


def _latest_prompts(draft: Draft) -> set[str]:
    """What versions without a replacement history kept: the latest users' messages, AGENTS.md and the environment."""
    kept: set[str] = set()
    letters = 0
    for item in reversed(_shown(draft)):
        if not isinstance(item, Message) or item.role != "user":
            continue
        letters += len(item.text) if item.category is MessageCategory.DIALOG else 0
        again = item.extra.get("source") in ("memory", "environment context")
        if again or (item.category is MessageCategory.DIALOG and letters <= KEPT_LETTERS):
            kept.add(item.id)
    return kept


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
