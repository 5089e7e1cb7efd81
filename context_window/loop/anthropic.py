"""Claude through Anthropic's client: views become requests, streamed messages become answers, client errors become `ModelError`s."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from session.items import Message, Reasoning
from session.parts import Text
from session.providers.anthropic.blocks import CARRIED, is_server_call, is_server_result
from session.session import Session
from session.units import is_answer

from ..errors import ArgumentError, ClientError
from ..model_errors import ModelNetworkError
from ..requests.payload import default_answer_tokens
from ..validation import check_amount
from .client_stream import INCOMPLETE, streamed_answer
from .model import Answer, OnText, check_model_name

COMPACTION_LEAST = 50_000
"""Fewest tokens at which Anthropic compacts."""
_VERSION = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d+)(?:-(\d{1,2}))?(?!\d)")


class AnthropicModel:
    """A `Model` that asks Claude.

        model = AnthropicModel(anthropic.AsyncAnthropic(), "claude-sonnet-5-5")
        result = await run_turn(session, "What is in main.py?", model=model, tools=[read_file], manager=manager)

    All answers are streamed. The client does the retries (`max_retries`); errors that remain are raised as `ModelError`.

    Attributes:
        model: Name of the model.
        max_tokens: Tokens that an answer may have.
        caching: True if requests mark what the prompt cache should keep.
    """

    def __init__(self, client: Any, model: str, *, max_tokens: int | None = None, caching: bool = True, **request_fields: Any) -> None:
        """
        Args:
            client: An `anthropic.AsyncAnthropic`, or an `anthropic.Anthropic`, which is then used in a thread. A cancelled turn ends at
                once, but that thread ends only at the next piece of the answer, and the program waits for it when it exits.
            model: Name of the model.
            max_tokens: Tokens that an answer may have. None for the amount that a manager reserves for the answer (`output_reserve`),
                or the model's output limit if that is less.
            caching: True to mark what the prompt cache should keep.
            request_fields: Other fields of every request, such as `thinking={"type": "adaptive"}`, in the client's form.

        Raises:
            ArgumentError: An argument is invalid.
        """
        if not callable(getattr(getattr(client, "messages", None), "stream", None)) or isinstance(client, type):
            raise ClientError("client", type(client), "pass an anthropic.AsyncAnthropic() or an anthropic.Anthropic()")
        check_model_name(model)
        if not isinstance(caching, bool):
            raise ArgumentError("caching", caching, "pass True or False")
        for name in ("messages", "system", "tools", "tool_choice", "stream"):
            if name in request_fields:
                raise ArgumentError(name, type(request_fields[name]), "leave it out; the loop sets this field")
        self.model = model
        self.max_tokens = default_answer_tokens(model) if max_tokens is None else check_amount("max_tokens", max_tokens, least=1)
        self.caching = caching
        self._client = client
        self._request_fields = request_fields

    def compacting(self, tokens: int) -> AnthropicModel | None:
        """Return this model with requests that have Anthropic compact a prompt above so many tokens; None if it cannot.

        It can from Opus and Sonnet 4.6 and Haiku 5.5 on, and not below 50,000 tokens
        (https://platform.claude.com/docs/en/build-with-claude/compaction-threshold).
        """
        match = _VERSION.search(self.model)
        if match is None or tokens < COMPACTION_LEAST or "context_management" in self._request_fields:
            return None
        if (int(match[2]), int(match[3] or 0)) < ((5, 5) if match[1] == "haiku" else (4, 6)):
            return None
        client = getattr(self._client, "beta", self._client)  # the client may be the beta client itself
        edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": tokens}}
        fields = {**self._request_fields, "context_management": {"edits": [edit]}}
        fields["betas"] = [*fields.get("betas", ()), "compact-2026-01-12"]
        return AnthropicModel(client, self.model, max_tokens=self.max_tokens, caching=self.caching, **fields)

    def request(self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool) -> dict[str, Any]:
        """Return the arguments of `client.messages.stream`.

        Args:
            view: The view to send.
            tools: Definitions in Anthropic's form.
            allow_tools: False if the model may not call tools now.
        """
        messages, system = view.to_anthropic_messages(caching=self.caching)
        _restore_paused_answer(messages, view)
        request: dict[str, Any] = {"model": self.model, "max_tokens": self.max_tokens, "messages": messages}
        if system:
            request["system"] = system
        if tools:
            request["tools"] = [dict(tool) for tool in tools]
            if not allow_tools:
                request["tool_choice"] = {"type": "none"}  # a request whose history has calls must define their tools
        return {**request, **self._request_fields}

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """Ask Claude and return its answer. Raises what `Model.answer` names."""
        import asyncio

        # In a thread: converting a long view with images takes a while, and the event loop has other work.
        request = await asyncio.to_thread(self.request, view, tools, allow_tools=allow_tools)
        manager = self._client.messages.stream(**request)  # it connects when it is entered

        async def enter() -> Any:
            return await manager.__aenter__()

        send = enter if hasattr(manager, "__aenter__") else manager.__enter__
        return await streamed_answer(send, {}, text_of=_event_text, is_kept=_is_end, final=_final_message, stops={}, on_text=on_text)


def _event_text(event: Any) -> str:
    """Return the text of an event of the client's stream."""
    return str(event.text) if event.type == "text" else ""


def _is_end(event: Any) -> bool:
    """True for the event that holds the whole message. Those before it hold all of its beginning, which takes too much room to keep."""
    return bool(event.type == "message_stop")


def _final_message(events: list[Any]) -> Any:
    if not hasattr(events[-1], "message"):  # the stream had no beginning
        raise ModelNetworkError(INCOMPLETE)
    return events[-1].message


def _restore_paused_answer(messages: Sequence[Mapping[str, Any]], view: Session) -> None:
    """Put the original blocks of a paused answer back if the request ends in it: the model continues only from an unchanged answer.

    Converters write a server-side call without its result as text, since the API accepts such a call only in this place.
    """
    if not messages or messages[-1]["role"] != "assistant":
        return
    response = takewhile(lambda item: isinstance(item, Reasoning) or is_answer(item), reversed(view.items))
    originals = {
        part.text: block
        for item in response
        if isinstance(item, Message) and isinstance(item.extra.get(CARRIED), list)
        for part, block in zip(item.content, item.extra[CARRIED], strict=False)
        if isinstance(part, Text) and isinstance(block, dict) and isinstance(block.get("type"), str)
    }
    content: list[Any] = messages[-1]["content"]
    restored = [_original_block(block, originals) for block in content]
    if restored and (is_server_call(restored[-1]) or is_server_result(restored[-1])):
        content[:] = restored


def _original_block(block: dict[str, Any], originals: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    original = originals.get(block["text"]) if block.get("type") == "text" else None
    if original is None:
        return block
    cache_mark = {"cache_control": block["cache_control"]} if "cache_control" in block else {}
    return {**original, **cache_mark}
