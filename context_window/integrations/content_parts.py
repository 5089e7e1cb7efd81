"""Convert message content between frameworks and sessions: a text, or a list of texts and blocks in any provider's style.

Each block becomes one part of an item, so that the blocks of a shortened item can be found again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from session.items import FunctionCallOutput, Message
from session.parts import Document, Image, Part, Text
from session.providers.pieces import Call, Result, Thought
from session.transcripts.block_parser import piece_of
from session.transcripts.values import json_text


def blocks_of(content: object) -> list[Any]:
    """Return the content as a list of blocks. A plain text becomes a list of that text."""
    return list(content) if isinstance(content, list | tuple) else [] if content is None else [content]


def with_text_blocks(content: object, text_block: Callable[[str], Any]) -> list[Any]:
    """Return the blocks of a content, with what `text_block` makes of it in the place of each text."""
    return [text_block(block) if isinstance(block, str) else block for block in blocks_of(content)]


def part_for(block: object) -> Part:
    """Return the part that a block counts as: a text, an image or a document. Any other block becomes its JSON text."""
    pieces = piece_of(_as_json(block), [])
    if len(pieces) == 1 and isinstance(pieces[0], Text | Image | Document):
        return pieces[0]
    texts = [piece.text for piece in pieces if isinstance(piece, Text)]
    if texts and len(texts) == len(pieces):
        return Text("\n".join(texts))
    return Text(json_text(_as_json(block)))


def thought_in(block: object) -> Thought | None:
    """Return the reasoning that a block holds, or None."""
    pieces = piece_of(block, []) if isinstance(block, dict) else []
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], Thought) else None


def is_call(block: object) -> bool:
    """True if a block is a tool call, or the result of a server-side tool: such a block belongs to the message's calls."""
    if not isinstance(block, dict):
        return False
    return block.get("type") == "tool_call" or any(isinstance(piece, Call | Result) for piece in piece_of(block, []))


def visible_content(
    content: object, item: Message | FunctionCallOutput, visible: Message | FunctionCallOutput, text_block: Callable[[str], Any]
) -> Any:
    """Return the content of a message whose item a view has shortened.

    The result is a text if the content was a text, or if all that is left is new text such as a placeholder. Otherwise it is a list of
    blocks. `item` was made from the content; `visible` is its form in the view.
    """
    parts, visible_parts = _parts(item), _parts(visible)
    blocks = _visible_blocks(blocks_of(content), parts, visible_parts, text_block)
    is_new_text = all(isinstance(part, Text) and not any(part is original for original in parts) for part in visible_parts)
    if isinstance(content, str) or is_new_text:
        return "\n".join(part.text for part in visible_parts if isinstance(part, Text))
    return blocks


def visible_blocks(
    content: object, item: Message | FunctionCallOutput, visible: Message | FunctionCallOutput, text_block: Callable[[str], Any]
) -> list[Any]:
    """Return the content of a message whose item a view has shortened, as blocks. Arguments as of `visible_content`."""
    return with_text_blocks(visible_content(content, item, visible, text_block), text_block)


def _visible_blocks(
    blocks: Sequence[Any], parts: Sequence[Part], visible_parts: Sequence[Part], text_block: Callable[[str], Any]
) -> list[Any]:
    """Return a block for each visible part: the original block if the part is unchanged, else a new block of text."""
    originals = {id(part): block for part, block in zip(parts, blocks, strict=True)}
    return [originals[id(part)] if id(part) in originals else text_block(getattr(part, "text", None) or "") for part in visible_parts]


def _parts(item: Message | FunctionCallOutput) -> tuple[Part, ...]:
    return item.content if isinstance(item, Message) else item.output


def _as_json(block: object) -> object:
    dump = getattr(block, "model_dump", None)
    if callable(dump) and not isinstance(block, type):
        return dump(mode="json", exclude_none=True)
    return block
