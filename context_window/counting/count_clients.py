"""The token-count calls of three providers' clients, in one form: write a request, send it, read the count. No client is imported here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeAlias

from session.session import Session

from ..errors import ClientError
from ..tools import Tool, anthropic_tools

Request: TypeAlias = Mapping[str, Any]
"""Arguments of a client's count call."""


class AnthropicClient(Protocol):
    """The parts of `anthropic.Anthropic` and `anthropic.AsyncAnthropic` that are used here. Importing them takes half a second."""

    @property
    def messages(self) -> Any:
        """The resource with `count_tokens`."""

    @property
    def with_options(self) -> Callable[..., Any]:
        """Function that returns the client with other settings."""


class OpenAIClient(Protocol):
    """The parts of `openai.OpenAI` and `openai.AsyncOpenAI` that are used here."""

    @property
    def responses(self) -> Any:
        """The resource with `input_tokens.count`."""

    @property
    def with_options(self) -> Callable[..., Any]:
        """Function that returns the client with other settings."""


class GoogleClient(Protocol):
    """The part of `google.genai.Client` and of its `aio` that is used here."""

    @property
    def models(self) -> Any:
        """The resource with `count_tokens`."""


ApiClient: TypeAlias = AnthropicClient | OpenAIClient | GoogleClient
"""A client that can count the tokens of a whole request."""


class CountClient(Protocol):
    """A provider's count call. A response has the count under the attribute `field`."""

    family: str
    field: str
    is_async: bool

    def request(self, session: Session, model: str) -> Request | None:
        """Return the request for a session or view; None if there is nothing to send yet."""

    def send(self, request: Request, seconds: float) -> Any:
        """Send it once, without retries, and wait at most this long. An asynchronous client's result is to be awaited."""


class AnthropicCount:
    """`client.messages.count_tokens` (https://platform.claude.com/docs/en/build-with-claude/token-counting)."""

    family, field = "claude", "input_tokens"

    def __init__(self, client: Any, tools: Iterable[Tool]) -> None:
        self.is_async = iscoroutinefunction(client.messages.count_tokens)
        self._client, self._tools = client, anthropic_tools(tools)

    def request(self, session: Session, model: str) -> Request | None:
        """Return the messages, the system prompt and the tools."""
        messages, system = session.to_anthropic_messages()
        request: dict[str, Any] = {"model": model, "messages": messages}
        if system:
            request["system"] = system
        if self._tools:
            request["tools"] = self._tools
        return request if messages else None

    def send(self, request: Request, seconds: float) -> Any:
        """Send it."""
        return self._client.with_options(max_retries=0, timeout=seconds).messages.count_tokens(**request)


class OpenAICount:
    """`client.responses.input_tokens.count`, for requests of either OpenAI API
    (https://developers.openai.com/api/reference/cli/resources/responses/subresources/input_tokens/index.md).
    """

    family, field = "openai", "input_tokens"

    def __init__(self, client: Any, tools: Iterable[Tool]) -> None:
        self.is_async = iscoroutinefunction(client.responses.input_tokens.count)
        self._client = client
        self._tools = [self._tool(tool) for tool in anthropic_tools(tools)]

    @staticmethod
    def _tool(tool: dict[str, Any]) -> dict[str, Any]:
        if "input_schema" not in tool:  # a hosted tool, such as web search
            return tool
        description = {"description": tool["description"]} if "description" in tool else {}
        return {"type": "function", "name": tool["name"], **description, "parameters": tool["input_schema"], "strict": False}

    def request(self, session: Session, model: str) -> Request | None:
        """Return the input items and the tools. System messages are among the items."""
        items = session.to_openai_responses()
        request: dict[str, Any] = {"model": model, "input": items}
        if self._tools:
            request["tools"] = self._tools
        return request if items else None

    def send(self, request: Request, seconds: float) -> Any:
        """Send it."""
        return self._client.with_options(max_retries=0, timeout=seconds).responses.input_tokens.count(**request)


class GoogleCount:
    """`client.models.count_tokens` (https://ai.google.dev/api/tokens).

    With an API key, Google's package refuses `system_instruction` and `tools` in this call
    (https://github.com/googleapis/python-genai/issues/432). They are then counted as texts before the contents.
    """

    family, field = "google", "total_tokens"

    def __init__(self, client: Any, tools: Iterable[Tool]) -> None:
        self.is_async = iscoroutinefunction(client.models.count_tokens)
        self._client, self._tools = client, [self._declaration(tool) for tool in anthropic_tools(tools)]
        api = getattr(client, "_api_client", None)  # what `vertexai` reads; `client.aio` lacks that property
        self._takes_config = bool(getattr(client, "vertexai", False) or getattr(api, "vertexai", False))

    @staticmethod
    def _declaration(tool: dict[str, Any]) -> dict[str, Any]:
        description = {"description": tool["description"]} if "description" in tool else {}
        return {"name": tool.get("name", "tool"), **description, "parameters_json_schema": tool.get("input_schema", {})}

    def request(self, session: Session, model: str) -> Request | None:
        """Return the contents, the system instruction and the tools."""
        from session.providers.google import to_google

        contents, system = to_google(session)
        if not contents:
            return None
        tools = [{"function_declarations": self._tools}] if self._tools else []
        if self._takes_config:
            config = ({"system_instruction": system} if system else {}) | ({"tools": tools} if tools else {})
            return {"model": model, "contents": contents, "config": config}
        before = [*(system["parts"] if system else []), *({"text": json.dumps(tool, ensure_ascii=False)} for tool in self._tools)]
        return {"model": model, "contents": [*([{"role": "user", "parts": before}] if before else []), *contents], "config": {}}

    def send(self, request: Request, seconds: float) -> Any:
        """Send it."""
        options = {"timeout": max(1, int(seconds * 1_000)), "retry_options": {"attempts": 1}}  # milliseconds
        return self._client.models.count_tokens(**{**request, "config": {**request["config"], "http_options": options}})


def count_client(client: Any, tools: Iterable[Tool] = ()) -> CountClient:
    """Return the count call of a client.

    Raises ClientError if it is not a client of Anthropic's, OpenAI's or Google's, or a tool has no JSON form.
    """
    if not isinstance(client, type):
        has_options = hasattr(client, "with_options")
        if has_options and callable(_at(client, "messages", "count_tokens")):
            return AnthropicCount(client, tools)
        if has_options and callable(_at(client, "responses", "input_tokens", "count")):
            return OpenAICount(client, tools)
        if callable(_at(client, "models", "count_tokens")):
            return GoogleCount(client, tools)
    raise ClientError(
        "api_client", type(client), "pass an anthropic.Anthropic(), an openai.OpenAI() or a google.genai.Client(), or an asynchronous one"
    )


def _at(value: object, *names: str) -> object:
    """Return the attribute at this path; None if there is none."""
    for name in names:
        value = getattr(value, name, None)
    return value
