"""OpenAI's Chat Completions on the loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from .answers import Block, Call, Say, Script
from .caching import PrefixCache, Spent, tokens
from .openai_events import completion_events
from .openai_rules import (
    check_choice,
    check_fields,
    check_file,
    check_headers,
    check_list,
    check_name,
    check_parameters,
    check_picture,
    check_text,
    envelope,
    wrong_type,
)
from .server import Body, Refusal, Stub, canonical

PARAMETERS = {"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens", "temperature"}
PARAMETERS |= {"top_p", "stop", "n", "seed", "user", "store", "metadata", "reasoning_effort", "response_format", "stream", "verbosity"}
PARAMETERS |= {"stream_options"}
ROLES: dict[str, tuple[set[str], set[str]]] = {
    "developer": ({"role", "content"}, {"name"}),
    "system": ({"role", "content"}, {"name"}),
    "user": ({"role", "content"}, {"name"}),
    "assistant": ({"role"}, {"content", "name", "tool_calls", "refusal", "audio", "annotations"}),
    "tool": ({"role", "content", "tool_call_id"}, set()),
}
"""By role: the fields a message must have, and those it may have."""
PARTS = {"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"}}
REASONING = re.compile(r"o\d|gpt-5(?!.*chat)")


class OpenAIChatStub(Stub):
    """`POST /v1/chat/completions`; the client's base URL is `stub.url + "/v1"`."""

    largest = 512 * 1024 * 1024
    finish: str | None = None
    """The finish reason of every answer; by default it follows from the answer."""

    def __init__(self, script: Script | None = None, *, cache_minimum: int = 1024) -> None:
        super().__init__(script)
        self._cache = PrefixCache(cache_minimum)

    def envelope(self, refusal: Refusal) -> Body:
        """Their error."""
        return envelope(refusal)

    def written(self, raw: bytes, status: int, body: Body) -> tuple[str, bytes]:
        """An answer as a stream of chunks, where the request asks for one."""
        request = json.loads(raw) if status == 200 else {}
        if not request.get("stream"):
            return super().written(raw, status, body)
        return "text/event-stream", completion_events(body, has_usage=bool((request.get("stream_options") or {}).get("include_usage")))

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        """A completion."""
        if path != "/v1/chat/completions":
            raise Refusal(f"Invalid URL (POST {path})", status=404)
        check_headers(headers)
        check_parameters(body, PARAMETERS, ("model", "messages"))
        messages = check_list(body["messages"], "messages")
        for number, message in enumerate(messages):
            _check_message(message, f"messages[{number}]", reasoning=REASONING.match(body["model"]) is not None)
        _check_calls(messages)
        spent = self._cache.whole([body.get("tools") or [], *messages])
        return self._answer(body, self.script(body), spent)

    def _answer(self, body: Body, said: Sequence[Block], spent: Spent) -> Body:
        texts = [block.text for block in said if isinstance(block, Say)]
        message: Body = {"role": "assistant", "content": "\n\n".join(texts) if texts else None, "refusal": None, "annotations": []}
        calls = [
            {
                "id": self.new_id("call_"),
                "type": "function",
                "function": {"name": block.name, "arguments": canonical(dict(block.arguments))},
            }
            for block in said
            if isinstance(block, Call)
        ]
        if calls:
            message["tool_calls"] = calls
        finish = self.finish or ("tool_calls" if calls else "stop")
        output = max(1, tokens(message["content"] or "") + tokens(calls))
        return {
            "id": self.new_id("chatcmpl-"),
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
            "usage": {
                "prompt_tokens": spent.total,
                "completion_tokens": output,
                "total_tokens": spent.total + output,
                "prompt_tokens_details": {"cached_tokens": spent.read, "audio_tokens": 0},
            },
        }


def _check_message(message: object, where: str, *, reasoning: bool) -> None:
    if not isinstance(message, dict):
        wrong_type(where, "an object", message)
    role = check_choice(message.get("role"), f"{where}.role", ROLES)
    check_fields(message, where, *ROLES[role])
    if role == "system" and reasoning:  # O3
        raise Refusal(
            f"Unsupported value: '{where}.role' does not support 'system' with this model.", param=f"{where}.role", code="unsupported_value"
        )
    if role == "tool":
        check_text(message["tool_call_id"], f"{where}.tool_call_id", most=40, least=1)
    if role == "assistant" and message.get("tool_calls") is not None:
        _check_tool_calls(message["tool_calls"], f"{where}.tool_calls")
    _check_content(message, where, role)


def _check_content(message: Body, where: str, role: str) -> None:
    content = message.get("content")
    if content is None and role == "assistant" and message.get("tool_calls") is not None:
        return
    if content is None:
        raise Refusal("Invalid value for 'content': expected a string, got null.", param=f"{where}.content")
    if isinstance(content, str):
        check_text(content, f"{where}.content")
        return
    allowed = PARTS.get(role, {"text"})
    for number, part in enumerate(check_list(content, f"{where}.content")):
        spot = f"{where}.content[{number}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "image_url" and role != "user":  # O2
            raise Refusal(
                f"Image URLs are only allowed for messages with role 'user', but this message with role '{role}' contains an image URL.",
                param=spot,
                code="invalid_value",
            )
        check_choice(kind, f"{spot}.type", allowed)
        check_fields(part, spot, {"type", str(kind)})
        if kind in ("text", "refusal"):
            check_text(part[kind], f"{spot}.{kind}")
        elif kind == "image_url":
            check_fields(part["image_url"], f"{spot}.image_url", {"url"}, {"detail"})
            check_picture(part["image_url"]["url"], f"{spot}.image_url.url")
            check_choice(part["image_url"].get("detail", "auto"), f"{spot}.image_url.detail", {"low", "high", "auto"})
        elif kind == "file":
            check_fields(part["file"], f"{spot}.file", (), {"file_data", "file_id", "filename"})
            check_file(part["file"], f"{spot}.file")


def _check_tool_calls(calls: object, where: str) -> None:
    for number, call in enumerate(check_list(calls, where, most=128)):
        spot = f"{where}[{number}]"
        check_fields(call, spot, {"id", "type", "function"})
        check_text(call["id"], f"{spot}.id", most=40, least=1)
        check_choice(call["type"], f"{spot}.type", {"function"})
        function = check_fields(call["function"], f"{spot}.function", {"name", "arguments"})
        check_name(function["name"], f"{spot}.function.name", most=64)
        check_text(function["arguments"], f"{spot}.function.arguments")


def _check_calls(messages: Sequence[Body]) -> None:
    """O1: tool messages right after the calls that they answer, one for each."""
    waiting: list[str] = []
    called: list[str] = []
    for number, message in enumerate([*messages, {"role": "end"}]):
        if message["role"] == "tool":
            name = message["tool_call_id"]
            if name not in called:
                raise Refusal(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
                    param=f"messages.[{number}].role",
                )
            if name not in waiting:
                raise Refusal(f"Duplicate value for 'tool_call_id' of '{name}' in message[{number}]", param="messages")
            waiting.remove(name)
            continue
        if waiting:
            raise Refusal(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
                f"The following tool_call_ids did not have response messages: {', '.join(waiting)}",
                param=f"messages.[{number}].role",
            )
        called = [call["id"] for call in message.get("tool_calls") or []]
        waiting = list(called)
        if len(set(called)) != len(called):
            raise Refusal(f"Duplicate tool call ids in message[{number}]", param=f"messages.[{number}].tool_calls")
