"""`BlockAdapter`: reads and copies messages whose content is a list of blocks: texts, thinking, calls, results and others."""

from __future__ import annotations

import json
from abc import abstractmethod
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from session.items import Item, Role
from session.parts import Part
from session.transcripts.values import json_text, text_at

from ..integrations.content_parts import part_for
from ..integrations.message_adapter import MessageAdapter
from .wire_format import Json

Kind: TypeAlias = Literal["thinking", "result", "text", "call"]


@dataclass(frozen=True, slots=True)
class BlockRun:
    """The blocks of a message that become one item.

    Attributes:
        kind: Their kind. "text" is everything that is none of the others.
        indices: Their indices in the message's content.
    """

    kind: Kind
    indices: tuple[int, ...]


class BlockAdapter(MessageAdapter[Json]):
    """Messages that are lists of blocks. Thinking and text become an item each, every call and every result one of its own.

    Attributes:
        field: The key of a message's content.
    """

    field: str

    @abstractmethod
    def blocks(self, message: Json) -> list[Any]:
        """Return the blocks of a message."""

    @abstractmethod
    def kind(self, block: Any, message: Json) -> Kind:
        """Return the kind of one of a message's blocks."""

    @abstractmethod
    def item(self, kind: Kind, blocks: list[Any], message: Json, ids: Iterator[str]) -> Item:
        """Return the item of a message's run.

        Args:
            kind: The run's kind.
            blocks: Its blocks.
            message: The message.
            ids: Ids for items.
        """

    @abstractmethod
    def changed(self, blocks: list[Any], item: Item, form: Item) -> list[Any]:
        """Return the blocks of an item as a view shows it.

        Args:
            blocks: The blocks of the item.
            item: The item.
            form: The item in the view, which is another one.
        """

    def runs(self, message: Json) -> list[BlockRun]:
        """Return the runs of a message, in the order of their items: thinking, results, text, calls. There is at least one."""
        by_kind: dict[Kind, list[int]] = {"thinking": [], "result": [], "text": [], "call": []}
        for index, block in enumerate(self.blocks(message)):
            by_kind[self.kind(block, message)].append(index)
        thinking, text = ([BlockRun(kind, tuple(by_kind[kind]))] if by_kind[kind] else [] for kind in _JOINED)
        results, calls = ([BlockRun(kind, (index,)) for index in by_kind[kind]] for kind in _SINGLE)
        return [*thinking, *results, *text, *calls] or [BlockRun("text", ())]

    def items(self, message: Json, ids: Iterator[str]) -> list[Item]:
        """Return the items of a message."""
        blocks = self.blocks(message)
        return [self.item(run.kind, [blocks[index] for index in run.indices], message, ids) for run in self.runs(message)]

    def partial_copy(self, message: Json, items: Sequence[Item], visible: Sequence[Item | None]) -> Json | None:
        """Return a copy that shows the visible items, or None if nothing is left but thinking."""
        blocks, runs = self.blocks(message), self.runs(message)
        by_index: dict[int, list[Any]] = {}
        for run, item, form in zip(runs, items, visible, strict=True):
            if form is item:
                by_index.update({index: [blocks[index]] for index in run.indices})
            elif form is not None:
                by_index[run.indices[0] if run.indices else 0] = self.changed([blocks[index] for index in run.indices], item, form)
        content = [block for index in sorted(by_index) for block in by_index[index]]
        has_more = any(run.kind != "thinking" for run, form in zip(runs, visible, strict=True) if form is not None)
        return {**message, self.field: content} if content and has_more else None

    def merge_responses(self, earlier: Json, later: Json) -> Json:
        """Return two responses as one message."""
        return {**later, self.field: [*self.blocks(earlier), *self.blocks(later)]}

    def alternating(self, messages: Sequence[Json], *, alone: str = "system") -> list[Json]:
        """Return the messages with neighbours of one role as one message. A view has them where it has lost a message between.

        Args:
            messages: The messages.
            alone: A role whose messages stay apart.
        """
        result: list[Json] = []
        for message in messages:
            if result and result[-1].get("role") == message.get("role") != alone:
                result[-1] = self.merge_responses(result[-1], message)
            else:
                result.append(message)
        return result


_JOINED: tuple[Kind, Kind] = ("thinking", "text")
_SINGLE: tuple[Kind, Kind] = ("result", "call")


def role_of(message: Json) -> Role:
    """Return the role of a message of the model, of a system prompt, or else of the user."""
    roles: dict[str, Role] = {"assistant": "assistant", "system": "system"}
    return roles.get(text_at(message, "role"), "user")


def plain_json(value: object) -> str:
    """Return JSON in which bytes are base64, and another object that has no JSON form is its text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=_plain)


def arguments_json(value: object) -> str:
    """Return the arguments of a call, an object or its JSON, as JSON. Bytes are base64."""
    return value if isinstance(value, str) else json_text(json.loads(json.dumps(value or {}, default=_plain)))


def plain_part(block: Any) -> Part:
    """Return the part that a block counts as. Bytes are base64."""
    return part_for(block if isinstance(block, dict) and isinstance(block.get("text"), str) else json.loads(plain_json(block)))


def _plain(value: object) -> str:
    return b64encode(value).decode("ascii") if isinstance(value, bytes) else str(value)
