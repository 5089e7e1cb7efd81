"""Texts, images and documents as Anthropic's blocks, and the limits of a whole request (A8): how many images, how large together.

What cannot be sent becomes a note: a text in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from session.items import Message
from session.parts import Document, Image, Part
from session.providers.media import Inline, Link, Note, Upload, coded_problem, document_source, image_source, note, unknown_format
from session.providers.shrinking import within

Block: TypeAlias = dict[str, Any]

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_SIDE, IMAGE_ENCODED = 8_000, 10 * 1024 * 1024
"""What an image may have: pixels a side, characters of base64 (A8). Where it exceeds them, it is made smaller."""
MANY, SIDE_OF_MANY = 20, 2_000
"""With more images and documents than these, what a side of an image may have, in pixels (A8)."""
MOST_IMAGES, FEWER_IMAGES = 100, 80
"""Images a request may have (A8), and how many of the newest stay where it had more."""
MOST_ENCODED, LESS_ENCODED = 24 * 1024 * 1024, 12 * 1024 * 1024
"""Characters of base64 that all images and documents may have, the rest of the 32 MB left for texts, and how many stay."""
TITLE_LENGTH = 500
CARRIED = "anthropic_blocks"
"""In `Message.extra`: blocks that a session has no words for, as they came. They go back as they are."""
_CARRIABLE = {
    "assistant": frozenset({"text", "server_tool_use", "mcp_tool_use", "container_upload", "compaction"}),
    "user": frozenset({"container_upload", "search_result"}),
}


def text_block(text: str) -> Block:
    """A block of text."""
    return {"type": "text", "text": text}


def plain(parts: Iterable[Part]) -> Iterator[Block]:
    """Text blocks, for where the API takes nothing else; blank ones are left out (A6)."""
    for part in parts:
        text = note(part).text if isinstance(part, Image) or part.text is None else part.text
        if text.strip():
            yield text_block(text)


def is_server_call(block: Block) -> bool:
    """Whether the block asks for a tool that runs at the provider."""
    return block.get("type") in ("server_tool_use", "mcp_tool_use")


def is_server_result(block: Block) -> bool:
    """Whether the block is what such a tool answered."""
    kind = block.get("type")
    return isinstance(kind, str) and kind.endswith("_tool_result")


def carried(message: Message) -> list[Block]:
    """The blocks that a way back found no words for; none where they would be refused, as a call without its result is (A2), or a
    result with a damaged file (A8)."""
    found = message.extra.get(CARRIED)
    if not isinstance(found, list) or not all(isinstance(block, dict) for block in found):
        return []
    allowed = _CARRIABLE["assistant" if message.role == "assistant" else "user"]
    for block in found:
        kind = block.get("type")
        if not isinstance(kind, str) or not (kind in allowed or (message.role == "assistant" and is_server_result(block))):
            return []
        if kind == "text" and not (isinstance(block.get("text"), str) and block["text"].strip()):
            return []
    asked = [block.get("id") for block in found if is_server_call(block)]
    if any(_is_damaged(block) for block in found):
        return []
    if sorted(map(str, asked)) != sorted(str(block.get("tool_use_id")) for block in found if is_server_result(block)):
        return []
    return [{key: value for key, value in block.items() if key != "cache_control"} for block in found]  # A7: marks are set anew


def _is_damaged(value: object) -> bool:
    """True if base64 anywhere in a block is a damaged image or document."""
    if isinstance(value, Mapping):
        if value.get("type") == "base64":
            return coded_problem(value.get("data"), value.get("media_type")) is not None
        return any(map(_is_damaged, value.values()))
    return isinstance(value, list) and any(map(_is_damaged, value))


@dataclass(slots=True)
class _Medium:
    """An image or a document that was sent."""

    part: Image | Document
    block: Block
    inline: Inline | None
    encoded: int

    def give_up(self) -> None:
        """Puts a note in its place."""
        self.put(note(self.part))

    def put(self, source: Inline | Note) -> None:
        """Puts other bytes, or a note, in its place: in the same block, which stands in its message already."""
        if isinstance(source, Note):
            self.block.clear()
            self.block.update(text_block(source.text))
        else:
            self.block["source"] = _inline(source)


class Album:
    """All images and documents of one request.

    What the limits of a request take is a function of the images in their order, taken in big steps, as trims are: so a longer
    log nearly always extends the messages of a shorter one, and where it does not, the prompt cache is lost once. That is at the
    21st image or document, if any image before it has a side of more than 2000 pixels; at the 101st image and then at every 21st after it;
    and wherever 12 MB have come together again.
    """

    def __init__(self) -> None:
        self._media: list[_Medium] = []

    def rich(self, parts: Iterable[Part]) -> Iterator[Block]:
        """Blocks for where the API takes images and documents too; blank texts are left out (A6)."""
        for part in parts:
            if isinstance(part, Image):
                yield self._image(part)
            elif isinstance(part, Document):
                if part.text is None or part.text.strip():
                    yield self._document(part)
            elif part.text.strip():
                yield text_block(part.text)

    def parts(self) -> dict[int, Image | Document]:
        """Return the images and documents that are sent, by the `id` of their blocks."""
        return {id(medium.block): medium.part for medium in self._media if medium.block["type"] != "text"}

    def fit(self) -> None:
        """Keeps the limits of a request: the oldest become notes, and among many the large ones become smaller."""
        media = _newest(self._media, MOST_IMAGES, FEWER_IMAGES, lambda medium: int(isinstance(medium.part, Image)))
        media = _newest(media, MOST_ENCODED, LESS_ENCODED, lambda medium: medium.encoded)
        if len(media) > MANY:
            for medium in media:
                if medium.inline is not None:
                    smaller = within(medium.inline, side=SIDE_OF_MANY, encoded=IMAGE_ENCODED)
                    if smaller is not medium.inline:
                        medium.put(smaller)

    def _image(self, image: Image) -> Block:
        source = image_source(image)
        if isinstance(source, Inline) and source.media_type not in IMAGE_TYPES:  # A8
            source = unknown_format(source.media_type)
        if isinstance(source, Inline):
            source = within(source, side=IMAGE_SIDE, encoded=IMAGE_ENCODED)  # A8
        if isinstance(source, Note):
            return text_block(source.text)
        if isinstance(source, Inline):
            return self._kept(image, {"type": "image", "source": _inline(source)}, source)
        return self._kept(image, {"type": "image", "source": _reference(source)})

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
        return self._kept(document, block)

    def _kept(self, part: Image | Document, block: Block, inline: Inline | None = None) -> Block:
        data = block["source"].get("data", "") if block["source"]["type"] == "base64" else ""
        self._media.append(_Medium(part, block, inline, len(data)))
        return block


def _newest(media: list[_Medium], most: int, fewer: int, weight: Callable[[_Medium], int]) -> list[_Medium]:
    """The newest ones; whenever the sum of their weights exceeds `most`, the oldest are given up until it is at most `fewer`.

    The newest of all stays where it is no more than `most` by itself. What weighs nothing always stays.
    """
    kept: list[_Medium] = []
    total = 0
    for newest in media:
        kept.append(newest)
        total += weight(newest)
        if total > most:
            staying: list[_Medium] = []
            for medium in kept:
                if weight(medium) and total > (most if medium is newest else fewer):
                    total -= weight(medium)
                    medium.give_up()
                else:
                    staying.append(medium)
            kept = staying
    return kept


def _inline(source: Inline) -> dict[str, Any]:
    return {"type": "base64", "media_type": source.media_type, "data": source.base64}


def _reference(source: Link | Upload) -> dict[str, Any]:
    if isinstance(source, Link):
        return {"type": "url", "url": source.url}
    return {"type": "file", "file_id": source.file_id}
