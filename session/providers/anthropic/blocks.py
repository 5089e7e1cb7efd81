"""Write texts, images and documents as Anthropic's blocks, within the limits of a request (A8): number of images, total size.

A note, which is a text, replaces content that cannot be sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from session.items import Compaction, FunctionCall, FunctionCallOutput, Message
from session.parts import Document, Image, Part, joined_text
from session.providers.conversation import copied
from session.providers.media import (
    Inline,
    Link,
    Note,
    Upload,
    base64_problem,
    document_source,
    image_source,
    note,
    shrunk_to_fit,
    unknown_format,
)

Block: TypeAlias = dict[str, Any]

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_SIDE, IMAGE_ENCODED = 8_000, 10 * 1024 * 1024
"""Limits of one image: pixels per side, characters of base64 (A8). An image that exceeds them is shrunk."""
MANY, SIDE_OF_MANY = 20, 2_000
"""In a request with more images and documents than `MANY`, the limit of an image's side, in pixels (A8)."""
MOST_IMAGES, FEWER_IMAGES = 100, 80
"""Maximum images of a request (A8), and the number of newest images that stay when it is exceeded."""
MOST_ENCODED, LESS_ENCODED = 24 * 1024 * 1024, 12 * 1024 * 1024
"""Maximum characters of base64 in a request (the rest of the 32 MB is for text), and the number that stays when it is exceeded."""
TITLE_LENGTH = 500
CARRIED = "anthropic_blocks"
"""In `Message.extra`: blocks that a session has no words for. They are sent back unchanged."""
RAN = "anthropic_ran"
"""In `metadata` of a call and `extra` of its output, if the tool ran at Anthropic: the block as it came, which is sent back unchanged. The
output has the length of its text beside it, so that one that a view has shortened is told."""
_CARRIABLE = {
    "assistant": frozenset({"text", "server_tool_use", "mcp_tool_use", "container_upload", "compaction"}),
    "user": frozenset({"container_upload", "search_result"}),
}


def text_block(text: str) -> Block:
    """Return a text block."""
    return {"type": "text", "text": text}


def plain(parts: Iterable[Part]) -> Iterator[Block]:
    """Yield text blocks where the API takes only text, without blank ones (A6)."""
    for part in parts:
        text = note(part).text if isinstance(part, Image) or part.text is None else part.text
        if text.strip():
            yield text_block(text)


def is_server_call(block: Block) -> bool:
    """True if the block calls a tool that runs at the provider."""
    return block.get("type") in ("server_tool_use", "mcp_tool_use")


def is_server_result(block: Block) -> bool:
    """True if the block is the result of such a tool."""
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith("_tool_result")


def ran_call(block: Block) -> dict[str, Any]:
    """Return what the metadata of a call keeps of its block: nothing if the client runs the tool."""
    return {RAN: {"block": block}} if is_server_call(block) else {}


def ran_result(block: Block, parts: Iterable[Part]) -> dict[str, Any]:
    """Return what an output with these parts keeps of its block: nothing if the client ran the tool."""
    if not is_server_result(block) or block.get("type") == "tool_result":
        return {}
    return {RAN: {"block": block, "characters": len(joined_text(tuple(parts)))}}


def ran_at_provider(call: FunctionCall, output: FunctionCallOutput | None) -> list[Block]:
    """Return the blocks of a call that ran at Anthropic and of its result; nothing if it did not, or a view has shortened the result."""
    made, given = call.metadata.get(RAN), None if output is None else output.extra.get(RAN)
    if not isinstance(made, Mapping) or not isinstance(given, Mapping) or output is None or given.get("characters") != len(output.text):
        return []
    blocks = [made.get("block"), given.get("block")]
    return carried(Message("assistant", "", extra={CARRIED: blocks}, id="ran", created_at=0.0))


def carried(message: Message | Compaction) -> list[Block]:
    """Return the carried blocks of a message or of Anthropic's own compaction, or nothing if the API would refuse them.

    It refuses a call without its result (A2), and a result with a damaged file (A8).
    """
    blocks = message.extra.get(CARRIED)
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        return []
    is_assistant = isinstance(message, Compaction) or message.role == "assistant"
    allowed = _CARRIABLE["assistant" if is_assistant else "user"]
    for block in blocks:
        kind = block.get("type")
        if not isinstance(kind, str) or not (kind in allowed or (is_assistant and is_server_result(block))):
            return []
        if kind == "text" and not (isinstance(block.get("text"), str) and block["text"].strip()):
            return []
    if any(_is_damaged(block) for block in blocks):
        return []
    call_ids = sorted(str(block.get("id")) for block in blocks if is_server_call(block))
    if call_ids != sorted(str(block.get("tool_use_id")) for block in blocks if is_server_result(block)):
        return []
    return [
        {key: copied(value) for key, value in block.items() if key != "cache_control"} for block in blocks
    ]  # A7: `write.py` sets the marks


def _is_damaged(value: object) -> bool:
    """True if base64 anywhere in a block is a damaged image or document."""
    if isinstance(value, Mapping):
        if value.get("type") == "base64":
            return base64_problem(value.get("data"), value.get("media_type")) is not None
        return any(map(_is_damaged, value.values()))
    return isinstance(value, list) and any(map(_is_damaged, value))


@dataclass(slots=True)
class _Medium:
    """An image or a document in the request: its part of the log, its block, and the image's bytes if they are in the request."""

    part: Image | Document
    block: Block
    inline: Inline | None

    @property
    def encoded(self) -> int:
        """Characters of base64."""
        source = self.block["source"]
        return len(source["data"]) if source["type"] == "base64" else 0

    def shrunk(self) -> Inline | Note | None:
        """Return the image as it is sent among many others; None if that changes nothing."""
        smaller = None if self.inline is None else shrunk_to_fit(self.inline, side=SIDE_OF_MANY, encoded=IMAGE_ENCODED)
        return None if smaller is self.inline else smaller


class Album:
    """All images and documents of one request.

    The dropped images depend only on the images in their order, and are dropped in big steps, as in trims. So a longer log nearly always
    extends the messages of a shorter one. Where it does not, the prompt cache is lost once: at the 21st image or document, if any image
    before it has a side of more than 2000 pixels; at the 101st image and then at every 21st after it; and after every 12 MB more.
    """

    def __init__(self) -> None:
        self._media: list[_Medium] = []

    def blocks(self, parts: Iterable[Part]) -> Iterator[Block]:
        """Yield the blocks of parts where the API takes images and documents too, without blank texts (A6)."""
        for part in parts:
            if isinstance(part, Image):
                yield self._image(part)
            elif isinstance(part, Document):
                if part.text is None or part.text.strip():
                    yield self._document(part)
            elif part.text.strip():
                yield text_block(part.text)

    def sent(self) -> dict[int, Image | Document]:
        """Return the images and documents that are sent, without those that became notes, by the `id` of their blocks."""
        return {id(medium.block): medium.part for medium in self._media if medium.block["type"] != "text"}

    def fit(self) -> None:
        """Apply the limits of a request: the oldest images become notes, and large images among many are shrunk."""
        for number, change in self._changes().items():
            block = self._media[number].block
            if isinstance(change, Note):
                block.clear()
                block.update(text_block(change.text))
            else:
                block["source"] = _inline(change)

    def _changes(self) -> dict[int, Inline | Note]:
        """Return the media that a request shows in another form, by their number: as a note, or shrunk."""
        media = _newest(list(enumerate(self._media)), MOST_IMAGES, FEWER_IMAGES, lambda medium: int(isinstance(medium.part, Image)))
        media = _newest(media, MOST_ENCODED, LESS_ENCODED, lambda medium: medium.encoded)
        staying = {number for number, _ in media}
        changes: dict[int, Inline | Note] = {
            number: note(medium.part) for number, medium in enumerate(self._media) if number not in staying
        }
        if len(media) > MANY:
            changes |= {number: smaller for number, medium in media if (smaller := medium.shrunk()) is not None}
        return changes

    def _image(self, image: Image) -> Block:
        source = image_source(image)
        if isinstance(source, Inline) and source.media_type not in IMAGE_TYPES:  # A8
            source = unknown_format(source.media_type)
        if isinstance(source, Inline):
            source = shrunk_to_fit(source, side=IMAGE_SIDE, encoded=IMAGE_ENCODED)  # A8
        if isinstance(source, Note):
            return text_block(source.text)
        if isinstance(source, Inline):
            return self._add(image, {"type": "image", "source": _inline(source)}, source)
        return self._add(image, {"type": "image", "source": _reference(source)})

    def _document(self, document: Document) -> Block:
        source = document_source(document)
        if isinstance(source, Inline):
            if source.media_type == "application/pdf":
                wire = _inline(source)
            elif (text := source.text) is not None and text.strip():
                wire = {"type": "text", "media_type": "text/plain", "data": text}
            else:
                return text_block(note(document).text)
        elif isinstance(source, Note):
            return text_block(source.text)
        else:
            wire = _reference(source)
        block: Block = {"type": "document", "source": wire}
        if document.title and document.title.strip():
            block["title"] = document.title[:TITLE_LENGTH]
        return self._add(document, block)

    def _add(self, part: Image | Document, block: Block, inline: Inline | None = None) -> Block:
        self._media.append(_Medium(part, block, inline))
        return block


def _newest(media: list[tuple[int, _Medium]], most: int, fewer: int, weight: Callable[[_Medium], int]) -> list[tuple[int, _Medium]]:
    """Return the newest media. Whenever the sum of weights exceeds `most`, the oldest are left out until it is at most `fewer`.

    The newest medium stays if it alone weighs no more than `most`. A medium of weight 0 always stays.
    """
    current: list[tuple[int, _Medium]] = []
    total = 0
    for newest in media:
        current.append(newest)
        total += weight(newest[1])
        if total > most:
            staying = []
            for numbered in current:
                if weight(numbered[1]) and total > (most if numbered is newest else fewer):
                    total -= weight(numbered[1])
                else:
                    staying.append(numbered)
            current = staying
    return current


def _inline(source: Inline) -> dict[str, Any]:
    return {"type": "base64", "media_type": source.media_type, "data": source.base64}


def _reference(source: Link | Upload) -> dict[str, Any]:
    if isinstance(source, Link):
        return {"type": "url", "url": source.url}
    return {"type": "file", "file_id": source.file_id}
