"""OpenAI's Responses API, where the client sends the whole conversation with every request, as Codex does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ..integrations.responses_adapter import ResponsesAdapter
from .openai_chat import openai_error
from .responses_recall import ResponsesJoinedAnswer
from .wire_format import Json, RequestConversation, WireFormat, objects, text_of, tokens_in, tools_and_options


class ResponsesWire(WireFormat):
    """Requests of `client.responses`.

    One that continues a conversation which the provider holds (`previous_response_id`, `conversation`) is not managed: it does not say what
    the conversation is.
    """

    name: ClassVar[str] = "openai"
    upstream: ClassVar[str] = "https://api.openai.com"
    variables: ClassVar[Mapping[str, str]] = {}
    adapter: ClassVar[ResponsesAdapter] = ResponsesAdapter()
    joined_answer: ClassVar[type[ResponsesJoinedAnswer]] = ResponsesJoinedAnswer
    field: ClassVar[str] = "input"
    path: ClassVar[str] = "/v1/responses"

    def conversation(self, path: str, body: Json) -> RequestConversation | None:
        """Return the conversation of a request for an answer."""
        model, messages = body.get("model"), objects(body.get("input"))
        is_continued = body.get("previous_response_id") is not None or body.get("conversation") is not None
        if path != self.path or not isinstance(model, str) or not messages or is_continued:
            return None
        system, output_tokens = text_of(body.get("instructions")), tokens_in(body, "max_output_tokens")
        return RequestConversation(model, system, messages, *tools_and_options(body), output_tokens)

    def error(self, status: int, message: str) -> Json:
        """Return an error in OpenAI's form."""
        return openai_error(status, message)


class ChatGPTWire(ResponsesWire):
    """Requests of Codex with a login to ChatGPT, which go to another server."""

    name: ClassVar[str] = "chatgpt"
    upstream: ClassVar[str] = "https://chatgpt.com/backend-api/codex"
    path: ClassVar[str] = "/responses"
