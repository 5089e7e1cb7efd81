"""Read the messages of Amazon Bedrock's Converse API as a session. There is no writer: a session is sent in one of the other formats.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html

A block is an object with one field, which names its type: `{"toolUse": {…}}`. Cache points and the options of citations are left out, as is
the context of a document. Bytes may be base64, as in JSON, or bytes, as in boto3. An S3 location becomes a URL that no other provider
reaches: the image or document is sent as a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from session.errors import FormatError, short
from session.items import FunctionCall, Message, Reasoning
from session.parts import Document, Image, Part, Text
from session.providers.parsing import SessionBuilder, expect_base64, expect_list, expect_object, expect_text
from session.providers.pieces import Call, Piece, Result, Thought
from session.sanitize import json_text
from session.session import Session

MEDIA_TYPES = {
    "jpeg": "image/jpeg",
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "html": "text/html",
    "txt": "text/plain",
    "md": "text/markdown",
}
"""The media types of Converse's formats of images and documents."""


def from_converse(messages: object, system: object = None) -> Session:
    """Return the session of these messages. Ids name places ("m0", "m0.1"; "s" for the system prompt), times are 0.

        session = from_converse(request["messages"], request.get("system"))
        session = from_converse([*messages, client.converse(…)["output"]["message"]])

    Args:
        messages: Messages of Converse.
        system: The system prompt: None, a text, or blocks.

    Raises:
        FormatError: A value is not in the documented shape, or a block's type is unknown; `.where` names its place.
    """
    builder = SessionBuilder()
    builder.begin("s")
    for piece in _pieces([{"text": system}] if isinstance(system, str) else system or [], "system"):
        if isinstance(piece, Part):
            builder.add(Message("system", piece, **builder.fields()))
    for index, (where, value) in enumerate(expect_list(messages, "messages")):
        message = expect_object(value, where)
        role = message.get("role")
        if role not in ("user", "assistant"):
            raise FormatError(f"{where}.role", f"{short(role)} is neither user nor assistant")
        builder.begin(f"m{index}", is_response=role == "assistant")
        _add(builder, role, _pieces(message.get("content"), f"{where}.content"))
    return builder.finish()


def _add(builder: SessionBuilder, role: Literal["user", "assistant"], pieces: Iterator[Piece]) -> None:
    """Add the items of a message: a `Message` for each run of parts, an item for every other block."""
    parts: list[Part] = []
    for piece in [*pieces, None]:
        if isinstance(piece, Part):
            parts.append(piece)
            continue
        if parts:
            builder.add(Message(role, parts, **builder.fields()))
            parts = []
        if isinstance(piece, Thought):
            builder.add(Reasoning(piece.text, piece.signature, piece.data, **builder.fields()))
        elif isinstance(piece, Call):
            builder.add(FunctionCall(piece.name, str(piece.arguments), piece.id, **builder.fields()))
        elif isinstance(piece, Result):
            builder.add_output(piece.call_id, piece.parts, is_error=piece.is_error)


def _pieces(content: object, where: str) -> Iterator[Piece]:
    for place, value in expect_list(content, where):
        block = expect_object(value, place)
        names = [name for name, member in block.items() if member is not None]
        if len(names) != 1:
            raise FormatError(place, f"a block has one field, which names its type, and this one has {short(names)}")
        yield from _piece(names[0], block[names[0]], f"{place}.{names[0]}")


def _piece(kind: str, value: object, where: str) -> Iterator[Piece]:
    if kind == "text":
        yield Text(expect_text(value, where))
        return
    if kind == "json":
        yield Text(json_text(value, where))
        return
    fields = expect_object(value, where)
    match kind:
        case "image":
            yield Image(**_source(fields, where))
        case "document":
            yield _document(fields, where)
        case "guardContent":
            guarded = fields.get("text")
            yield from _pieces([{"text": _text(expect_object(guarded, where), "text", where)} if guarded is not None else fields], where)
        case "citationsContent":
            yield from _pieces(fields.get("content"), f"{where}.content")
        case "reasoningContent":
            yield _thought(fields, where)
        case "toolUse":
            arguments = expect_object(fields.get("input", {}), f"{where}.input")
            yield Call(_text(fields, "toolUseId", where), _text(fields, "name", where), json_text(dict(arguments), f"{where}.input"))
        case "toolResult":
            inner = _pieces(fields.get("content"), f"{where}.content")
            parts = tuple(piece for piece in inner if isinstance(piece, Part))
            yield Result(_text(fields, "toolUseId", where), parts, is_error=fields.get("status") == "error")
        case "cachePoint":
            return
        case _:
            raise FormatError(where, f"{short(kind)} is a type of block that is not read; leave the block out")


def _thought(fields: Mapping[str, Any], where: str) -> Thought:
    redacted = fields.get("redactedContent")
    if redacted is not None:
        return Thought(data=expect_base64(redacted, f"{where}.redactedContent").decode("utf-8", "replace"))
    reasoning = expect_object(fields.get("reasoningText"), f"{where}.reasoningText")
    signature = reasoning.get("signature")
    return Thought(
        _text(reasoning, "text", f"{where}.reasoningText"),
        None if signature is None else expect_text(signature, f"{where}.reasoningText.signature") or None,
    )


def _document(fields: Mapping[str, Any], where: str) -> Document:
    source = expect_object(fields.get("source"), f"{where}.source")
    name = fields.get("name")
    title = None if name is None else expect_text(name, f"{where}.name") or None
    if source.get("text") is not None:
        return Document(text=_text(source, "text", f"{where}.source"), title=title)
    if source.get("content") is not None:
        texts = [piece.text for piece in _pieces(source["content"], f"{where}.source.content") if isinstance(piece, Text)]
        return Document(text="\n".join(texts), title=title)
    return Document(**_source(fields, where), title=title)


def _source(fields: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the arguments of `Image` or `Document`."""
    source = expect_object(fields.get("source"), f"{where}.source")
    location = source.get("s3Location")
    if location is not None:
        return {"url": _text(expect_object(location, f"{where}.source.s3Location"), "uri", f"{where}.source.s3Location")}
    data = expect_base64(source.get("bytes"), f"{where}.source.bytes")
    return {"data": data, "media_type": MEDIA_TYPES.get(str(fields.get("format")))}


def _text(fields: Mapping[str, Any], name: str, where: str) -> str:
    return expect_text(fields.get(name), f"{where}.{name}")
