"""Compactions that a provider made: Anthropic's `compaction` blocks and the `compaction` items of OpenAI's Responses API.

Each is a `Compaction` that carries the original. The provider ignores what came before it, so it replaces everything before it but
instructions: views leave these items out, and the log keeps them. Requests in the same format repeat the original unchanged. Other formats
show the summary, as far as it can be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any, TypeGuard

from session.edits import is_structural
from session.items import Compaction, Item, Message
from session.usage import Usage

CARRIERS = frozenset({"anthropic_blocks", "openai_item"})
"""Keys of `Compaction.extra` that hold the original."""
SEALED = "(The summary of the conversation up to here is encrypted: only the provider can read it.)"
"""Text of a compaction whose summary only the provider can read."""


def is_native(item: Item) -> TypeGuard[Compaction]:
    """True if a provider made this compaction."""
    return isinstance(item, Compaction) and not CARRIERS.isdisjoint(item.extra)


def is_sealed(item: Item) -> bool:
    """True for a compaction that no other summary can stand for: only its provider can read it."""
    return isinstance(item, Compaction) and sealed_text(item) is not None


def sealed_text(item: Compaction) -> str | None:
    """Return the encrypted summary of OpenAI's compaction; None for any other."""
    original = item.extra.get("openai_item")
    text = original.get("encrypted_content") if isinstance(original, dict) else None
    return text if isinstance(text, str) else None


def replaced_ids(items: Sequence[Item], kept_ids: Collection[str] = ()) -> tuple[str, ...]:
    """Return the ids that a compaction right after these items replaces, in order. The one before it replaced all that is older."""
    ids: list[str] = []
    for item in reversed(items):
        if not is_structural(item) and item.id not in kept_ids:
            ids.append(item.id)
        if is_native(item):
            break
    return tuple(reversed(ids))


def linked(answer: Iterable[Item], log: Sequence[Item]) -> list[Item]:
    """Return the items of an answer to a log, ready to be appended: each compaction names the items that it replaces.

    OpenAI's endpoint for compactions repeats the user's messages that it keeps. Those that are in the log are not appended again.
    """
    items = list(answer)
    if not any(map(is_native, items)):
        return items
    added: list[Item] = []
    kept_ids: set[str] = set()
    for item in items:
        original = _same_message(item, log, kept_ids) if isinstance(item, Message) and item.role == "user" else None
        if original is not None:
            kept_ids.add(original)
        else:
            added.append(replace(item, replaces=replaced_ids([*log, *added], kept_ids)) if is_native(item) else item)
    return added


def _same_message(message: Message, log: Sequence[Item], used_ids: Collection[str]) -> str | None:
    """Return the id of the user's message with this content, without those in `used_ids`; None if there is none."""
    same = (item for item in log if isinstance(item, Message) and item.role == "user" and item.content == message.content)
    return next((item.id for item in same if item.id not in used_ids), None)


def with_compactions(usage: Usage, report: Mapping[str, Any]) -> Usage:
    """Return the usage with what the compactions in Anthropic's report cost: its totals leave them out (`BetaUsage.iterations`)."""
    from session.transcripts.usage import usage_of

    iterations = report.get("iterations")
    compactions = [
        usage_of(iteration)
        for iteration in (iterations if isinstance(iterations, list) else ())
        if isinstance(iteration, dict) and iteration.get("type") == "compaction"
    ]
    total = sum_usage([usage, *(Usage(*counts) for counts in compactions if counts is not None)])
    return replace(total, last_prompt=usage.last_prompt)


def sum_usage(usages: Iterable[Usage]) -> Usage:
    """Return the sum of several reports. It has no last prompt."""
    return Usage(*map(sum, zip((0, 0, 0, 0), *(astuple(usage)[:4] for usage in usages), strict=True)))
