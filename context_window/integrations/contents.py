"""Contents as frameworks write them (a text, or a list of texts and blocks in any provider's style) as parts, and back by the part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from session.items import FunctionCallOutput, Message
from session.parts import Document, Image, Part, Text
from session.transcripts.pieces import Call, Result, Thought, piece_of
from session.transcripts.values import json_text


def blocks_of(content: object) -> list[Any]:
    """The content as a list: of its blocks, or of the one text that it is."""
    return list(content) if isinstance(content, list | tuple) else [] if content is None else [content]


def part_for(block: object) -> Part:
    """The one part that a block counts as; what is neither text nor medium counts by its JSON."""
    pieces = piece_of(_plain(block), [])
    if len(pieces) == 1 and isinstance(pieces[0], Text | Image | Document):
        return pieces[0]
    texts = [piece.text for piece in pieces if isinstance(piece, Text)]
    if texts and len(texts) == len(pieces):
        return Text("\n".join(texts))
    return Text(json_text(_plain(block)))


def thought_in(block: object) -> Thought | None:
    """The thought that a block is."""
    pieces = piece_of(block, []) if isinstance(block, dict) else []
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], Thought) else None


def is_call(block: object) -> bool:
    """Whether a block asks for a tool, or is what a tool at the provider answered: such a block goes with the message's calls."""
    if not isinstance(block, dict):
        return False
    return block.get("type") == "tool_call" or any(isinstance(piece, Call | Result) for piece in piece_of(block, []))


def blocks_shown(blocks: Sequence[Any], before: Sequence[Part], shown: Sequence[Part], text_block: Callable[[str], Any]) -> list[Any]:
    """The blocks that show these parts: where a part is the same, its block as it was, else a block of text.

    Args:
        blocks: A block a part of `before`.
        before: The parts of the whole item.
        shown: The parts of the item as it is shown.
        text_block: Makes a block of a text.
    """
    known = {id(part): block for part, block in zip(before, blocks, strict=True)}
    return [known[id(part)] if id(part) in known else text_block(getattr(part, "text", None) or "") for part in shown]


def content_shown(content: object, whole: Message | FunctionCallOutput, shown: Message | FunctionCallOutput, text_block: Any) -> Any:
    """The content that shows an item made of it: a text where it was one and only text is left, else blocks."""
    before, after = _parts(whole), _parts(shown)
    made = blocks_shown(blocks_of(content), before, after, text_block)
    only_text = all(isinstance(part, Text) and not any(part is one for one in before) for part in after)
    if isinstance(content, str) or only_text:
        return "\n".join(part.text for part in after if isinstance(part, Text))
    return made


def _parts(item: Message | FunctionCallOutput) -> tuple[Part, ...]:
    return item.content if isinstance(item, Message) else item.output


def _plain(block: object) -> object:
    dump = getattr(block, "model_dump", None)
    if callable(dump) and not isinstance(block, type):
        return dump(mode="json", exclude_none=True)
    return block
