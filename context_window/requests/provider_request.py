"""Build requests from a view in any provider's form: the conversation, the tools, and the options that a stateless use needs.

Anthropic's requests are built in `payload.py`. Nothing here counts or sends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from session.providers.google import to_google
from session.session import Session

from ..errors import ArgumentError, ModelArgumentError, ToolsError
from ..tools import Tool, anthropic_tools, is_gemini_tool
from ..validation import check_amount
from .payload import DEFAULT_MAX_TOKENS, default_answer_tokens

ANTHROPIC, OPENAI, RESPONSES, GOOGLE = "anthropic", "openai", "openai-responses", "google"
"""Names of these APIs, as `recall_tool` and `ContextWindowManager.request` take them."""
RESERVED_FIELDS: Mapping[str, frozenset[str]] = {
    ANTHROPIC: frozenset({"messages", "system"}),
    OPENAI: frozenset({"messages"}),
    RESPONSES: frozenset({"input", "instructions", "previous_response_id", "conversation"}),
    GOOGLE: frozenset({"contents", "config", "system_instruction", "tools", "tool_config"}),
}
"""Fields that a caller cannot set: they hold the conversation."""
_REASONING = re.compile(r"(?:ft:)?(?:o\d|gpt-[5-9](?!\d)(?!.*-chat)|codex-)")
"""OpenAI's reasoning models by name. The `-chat` models of these families do not reason (pydantic-ai issue 3326)."""


@dataclass(frozen=True, slots=True)
class RequestForm:
    """The parts of a request other than the view; `max_tokens` is None for the provider's limit.

    `tools` are definitions in Anthropic's form, `extra` other arguments of the API, sent unchanged.
    """

    provider: str
    model: str
    max_tokens: int | None
    tools: list[dict[str, Any]]
    extra: Mapping[str, Any]

    @classmethod
    def checked(cls, provider: object, model: object, max_tokens: object, tools: Iterable[Tool], extra: Mapping[str, Any]) -> Self:
        """Check the arguments and return them. Raises ArgumentError if one makes no sense."""
        if provider not in (ANTHROPIC, OPENAI, RESPONSES, GOOGLE):
            raise ArgumentError("provider", provider, "pass anthropic, openai, openai-responses or google")
        if not isinstance(model, str) or not model.strip():
            raise ModelArgumentError("model", model, "pass the model's name as a string")
        check_fields(str(provider), extra, "leave it out; the session and the arguments set this field")
        most = None if max_tokens is None else check_amount("max_tokens", max_tokens, least=1)
        return cls(str(provider), model, most, anthropic_tools(tools), extra)

    @property
    def answer_tokens(self) -> int:
        """Tokens that the answer may have, for an API that needs a figure. Anthropic's client streams answers that may be much longer."""
        return min(DEFAULT_MAX_TOKENS, default_answer_tokens(self.model)) if self.max_tokens is None else self.max_tokens

    def of(self, view: Session) -> dict[str, Any]:
        """Return the request with this view, for an API other than Anthropic's. Raises ArgumentError if the view has no messages."""
        if self.provider == GOOGLE:
            request = google_request(view, self.model, self.tools, self.max_tokens, config=self.extra)
            is_empty = not request["contents"]
        else:
            build = openai_chat_request if self.provider == OPENAI else openai_responses_request
            request = {**build(view, self.model, self.tools, self.max_tokens), **self.extra}
            is_empty = not (request.get("messages") or request.get("input"))
        if is_empty:
            raise ArgumentError("session", len(view.items), "its view has no messages: add a user message first")
        return request


def is_reasoning_model(model: str) -> bool:
    """True for OpenAI's reasoning models.

    They take developer messages for system messages (O3), and return encrypted reasoning. Other models refuse a request for that:
    `Encrypted content is not supported with this model` (OpenHands software-agent-sdk, pull request 1208).
    """
    return _REASONING.match(model.rpartition("/")[2]) is not None


def openai_chat_request(
    view: Session, model: str, tools: Iterable[Mapping[str, Any]], max_tokens: int | None, *, allow_tools: bool = True
) -> dict[str, Any]:
    """Return the arguments of `client.chat.completions.create`. Tools in Anthropic's form are converted, others sent unchanged."""
    request: dict[str, Any] = {"model": model, "messages": view.to_openai_messages(reasoning_model=is_reasoning_model(model))}
    return _with_options(request, [_chat_tool(tool) for tool in tools], allow_tools, "max_completion_tokens", max_tokens)


def openai_responses_request(
    view: Session, model: str, tools: Iterable[Mapping[str, Any]], max_tokens: int | None, *, allow_tools: bool = True
) -> dict[str, Any]:
    """Return the arguments of `client.responses.create`. Nothing is stored at the provider: reasoning comes back encrypted instead.

    Tools in Anthropic's form are converted, others sent unchanged. `max_tokens` includes reasoning.
    """
    request: dict[str, Any] = {"model": model, "input": view.to_openai_responses(), "store": False}
    if is_reasoning_model(model):
        request["include"] = ["reasoning.encrypted_content"]
    return _with_options(request, [_responses_tool(tool) for tool in tools], allow_tools, "max_output_tokens", max_tokens)


def google_request(
    view: Session,
    model: str,
    tools: Sequence[Mapping[str, Any]],
    max_tokens: int | None,
    *,
    allow_tools: bool = True,
    config: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the arguments of `client.models.generate_content`. `config` has other fields of `GenerateContentConfig`.

    Tools in Anthropic's form are converted; Gemini's own, such as `{"google_search": {}}`, are sent unchanged. `max_tokens` includes
    thoughts.
    """
    contents, system = to_google(view)
    options: dict[str, Any] = dict(config or {})
    if system is not None:
        options["system_instruction"] = system
    own_tools = [dict(tool) for tool in tools if is_gemini_tool(tool)]
    functions = [_google_tool(tool) for tool in tools if not is_gemini_tool(tool)]
    if tools:
        options["tools"] = [*([{"function_declarations": functions}] if functions else []), *own_tools]
    if functions:
        options["automatic_function_calling"] = {"disable": True}  # the loop runs the tools, not Google's client
        if not allow_tools:
            options["tool_config"] = {"function_calling_config": {"mode": "NONE"}}
    if max_tokens is not None:
        options["max_output_tokens"] = max_tokens
    return {"model": model, "contents": contents, "config": options}


def check_fields(provider: str, fields: Iterable[str], remedy: str) -> None:
    """Raise ArgumentError if a caller sets one of the fields that hold the conversation."""
    for name in fields:
        if name in RESERVED_FIELDS[provider]:
            raise ArgumentError(name, name, remedy)


def _with_options(
    request: dict[str, Any], definitions: list[dict[str, Any]], allow_tools: bool, limit_field: str, max_tokens: int | None
) -> dict[str, Any]:
    """Return an OpenAI request with its tools and its limit."""
    if definitions:
        request["tools"] = definitions
        if not allow_tools:
            request["tool_choice"] = "none"
    return request if max_tokens is None else {**request, limit_field: max_tokens}


def _chat_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": _function(tool, "parameters")} if "input_schema" in tool else dict(tool)


def _responses_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    # Without `strict`, this API treats a schema as strict, which forbids optional parameters.
    return {"type": "function", **_function(tool, "parameters"), "strict": False} if "input_schema" in tool else dict(tool)


def _google_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if "input_schema" not in tool:
        raise ToolsError("tools", tool.get("type", tool.get("name")), "pass functions; Gemini has no tool of this type")
    return _function(tool, "parameters_json_schema")


def _function(tool: Mapping[str, Any], schema_field: str) -> dict[str, Any]:
    description = {"description": tool["description"]} if tool.get("description") else {}
    return {"name": tool["name"], **description, schema_field: tool["input_schema"]}
