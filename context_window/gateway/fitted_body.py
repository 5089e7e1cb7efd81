"""`fitted_body`: the body that goes upstream: the client's own, or one with other messages and the recall tool."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from starlette.requests import Request

from ..model_errors import PromptTooLongError
from ..recall import recall_tool
from .body_json import body_bytes
from .watch import RequestWatch
from .windows import Windows
from .wire_format import Json, RequestConversation, WireFormat


class ManagedRequest(NamedTuple):
    """A request that carries a conversation.

    Attributes:
        wire: Its wire format.
        conversation: Its conversation.
        fields: Its body.
        body: The bytes of the body.
    """

    wire: WireFormat
    conversation: RequestConversation
    fields: Json
    body: bytes


def fitted_body(
    windows: Windows,
    managed: ManagedRequest,
    refusal: PromptTooLongError | None = None,
    *,
    watch: RequestWatch | None = None,
) -> bytes:
    """Return the body to send: the client's own if the conversation fits. A watch is told of its view."""
    wire, conversation, fields, body = managed
    on_view = None if watch is None else partial(watch.remember_view, partial(windows.note_count, wire, conversation))
    messages = windows.fit(wire, conversation, refusal, on_view)
    if messages is None:
        return body
    if conversation.recall_tool is not None:
        fields = wire.joined_answer.with_tool(fields, conversation.recall_tool) or fields
    return body_bytes(wire.with_messages(fields, messages), wire.field)


def can_recall(request: Request, path: str, wire: WireFormat, fields: Json) -> bool:
    """True if the request can have the recall tool, and its answer is one that recalls can be hidden in: not a JSON list of chunks."""
    is_list = path.endswith(":streamGenerateContent") and request.query_params.get("alt") != "sse"
    return not is_list and wire.joined_answer.with_tool(fields, recall_tool(wire.joined_answer.provider).definition) is not None
