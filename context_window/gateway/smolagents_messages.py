"""Messages of smolagents' memory, for `manage`: their calls and results are texts, which roles of their own tell apart.

https://huggingface.co/docs/smolagents/reference/models
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Role
from session.parts import Image, Part
from session.providers.additions import PREAMBLE
from session.transcripts.values import json_text

from ..integrations.content_parts import blocks_of, visible_content
from ..integrations.message_adapter import MessageAdapter
from .block_adapter import plain_part
from .wire_format import Json, MessageFormat

CALL = "tool-call"
RESPONSE = "tool-response"
_NAME = re.compile(r"""['"]name['"]: ['"]([\w.-]+)""")


def _text_block(text: str) -> Json:
    return {"type": "text", "text": text}


class SmolagentsAdapter(MessageAdapter[Json]):
    """Messages of smolagents. A step is what the model says, the text of its calls, and the text of all their results."""

    is_message_whole_response = False
    roles = ("user", "assistant", "system", CALL, RESPONSE)

    def __init__(self) -> None:
        super().__init__(self.user_message(PREAMBLE))

    def content_json(self, message: Json) -> str:
        """Return the message as JSON. Of an image it has the bytes."""
        return json.dumps([role_of(message), blocks_of(message.get("content"))], sort_keys=True, default=_bytes)

    def items(self, message: Json, ids: Iterator[str]) -> list[Item]:
        """Return the item of a message."""
        role, parts = role_of(message), [_part(block) for block in blocks_of(message.get("content"))]
        if role == CALL:
            text = "\n".join(getattr(part, "text", None) or "" for part in parts)
            name = _NAME.search(text)
            return [FunctionCall(name[1] if name else "tool", json_text({"text": text}), "", id=next(ids), created_at=0.0)]
        if role == RESPONSE:
            return [FunctionCallOutput("", parts, "", id=next(ids), created_at=0.0)]
        roles: dict[str, Role] = {"assistant": "assistant", "system": "system"}
        return [Message(roles.get(role, "user"), parts, id=next(ids), created_at=0.0)]

    def partial_copy(self, message: Json, items: Sequence[Item], visible: Sequence[Item | None]) -> Json | None:
        """Return a copy that shows the visible item, or None if there is none."""
        (item,), (form,) = items, visible
        if isinstance(form, FunctionCall):
            return {**message, "content": [_text_block(json.loads(form.arguments)["text"])]}
        if form is None or not (isinstance(item, Message | FunctionCallOutput) and isinstance(form, Message | FunctionCallOutput)):
            return None
        content = message.get("content")
        shown = visible_content(content, item, form, _text_block)
        return {**message, "content": shown if isinstance(content, str) or not isinstance(shown, str) else [_text_block(shown)]}

    def user_message(self, text: str) -> Json:
        """Return a user message with this text."""
        return {"role": "user", "content": [_text_block(text)]}

    def result_message(self, output: FunctionCallOutput, message: Json) -> Json:  # noqa: ARG002 - the interface
        """Return a message with the output of an interrupted call."""
        return {"role": RESPONSE, "content": [_text_block(output.text)]}

    def is_system(self, message: Json) -> bool:
        """True for a system prompt."""
        return role_of(message) == "system"


class SmolagentsFormat(MessageFormat):
    """Messages that a model of smolagents gets."""

    adapter: ClassVar[SmolagentsAdapter] = SmolagentsAdapter()


def role_of(message: Json) -> str:
    """Return a message's role, which may be a member of an enumeration."""
    role = message.get("role")
    return str(getattr(role, "value", role))


def _part(block: Any) -> Part:
    image = block.get("image") if isinstance(block, dict) else None
    return Image(data=_png(image), media_type="image/png") if hasattr(image, "save") else plain_part(block)


def _bytes(value: Any) -> str:
    return _png(value).hex() if hasattr(value, "save") else str(value)


def _png(image: Any) -> bytes:
    """Return the bytes of a Pillow image as they are sent."""
    data = io.BytesIO()
    image.save(data, format="PNG")
    return data.getvalue()
