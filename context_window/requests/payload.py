"""Builds a request for Anthropic's Messages API of a view: its contents, the answer's maximum length, the cache marks. Counts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Self

from session.providers.anthropic.thinking_order import with_thinking_in_order
from session.providers.anthropic.write import to_marked_anthropic
from session.session import Session

from ..errors import ArgumentError, BudgetError, ModelArgumentError
from ..models import describe_model
from ..validation import as_whole, check_amount

MAX_MARKS = 4
"""Maximum number of blocks with `cache_control` in a request (docs/provider-rules.md, A7)."""
MIN_ANSWER = 1_024
"""Tokens that the answer may have even if the window seems to have less left (unless the caller wants fewer): counts may be too high."""
DEFAULT_MAX_TOKENS = 8_192
"""Tokens of an answer if nothing is known of the model."""
RESERVED = {"messages": "the session holds the messages", "system": "add it to the session as its system message"}


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The parts of a request other than the view. `extra` are other arguments of the API, sent unchanged."""

    model: str
    max_tokens: int
    tools: list[dict[str, Any]]
    extra: Mapping[str, Any]

    @classmethod
    def checked(cls, model: object, max_tokens: object, tools: list[dict[str, Any]], extra: Mapping[str, Any]) -> Self:
        """Check the arguments and return them as options. Raises ArgumentError if one makes no sense."""
        if not isinstance(model, str) or not model:
            raise ModelArgumentError("model", model, "pass the model's name as a string")
        for name, remedy in RESERVED.items():
            if name in extra:
                raise ArgumentError(name, type(extra[name]), remedy)
        return cls(model, check_amount("max_tokens", max_tokens, least=1), tools, extra)


def payload_of(view: Session, options: RequestOptions, tokens: int, uncertainty: float) -> dict[str, Any]:
    """Return the request, of so many tokens give or take that part, as a dict for `client.messages.create(**request)`.

    Raises ArgumentError if the view has no messages, thinking leaves no room for the answer, or the caller set too many cache marks.
    """
    (messages, system), marked_blocks = to_marked_anthropic(view)
    if not messages:
        raise ArgumentError("session", len(view.items), "its view has no messages: add a user message first")
    _limit_marks(marked_blocks, messages[-1]["content"][-1], system, options)
    request: dict[str, Any] = {"model": options.model, "max_tokens": _answer_tokens(options, tokens, uncertainty)}
    if system:
        request["system"] = system
    request["messages"] = with_thinking_in_order(messages, options.extra.get("thinking"))
    if options.tools:
        request["tools"] = options.tools
    return {**request, **options.extra}


def default_answer_tokens(model: str) -> int:
    """Return the tokens that an answer may have if the caller sets no limit: the output reserve, or the model's output limit if less."""
    limits = describe_model(model)
    if limits.window is None:
        return DEFAULT_MAX_TOKENS if limits.output_limit is None else min(DEFAULT_MAX_TOKENS, limits.output_limit)
    return limits.output_reserve if limits.output_limit is None else min(limits.output_reserve, limits.output_limit)


def _answer_tokens(options: RequestOptions, tokens: int, uncertainty: float) -> int:
    """Return the answer's maximum length: the caller's limit, the model's limit, or the rest of its window, whichever is smallest."""
    model, limit = describe_model(options.model), options.max_tokens
    if model.output_limit is not None:
        limit = min(limit, model.output_limit)
    if model.window is not None:
        room = model.window - tokens - ceil(tokens * uncertainty)
        limit = min(limit, max(room, MIN_ANSWER))
    thinking = options.extra.get("thinking")
    thinking_tokens = as_whole(thinking.get("budget_tokens")) if isinstance(thinking, Mapping) else None
    if thinking_tokens is not None and thinking_tokens >= limit:
        raise BudgetError(
            "thinking.budget_tokens",
            thinking_tokens,
            f"it must be less than the {limit:,} tokens that the answer may have; lower it, or raise output_reserve of the ContextWindow",
        )
    return limit


def _limit_marks(
    in_messages: list[dict[str, Any]], last: dict[str, Any], system: str | list[dict[str, Any]] | None, options: RequestOptions
) -> None:
    """Remove cache marks from the view until the whole request has at most four, the least useful first.

    If the caller marks the end of the request (a `cache_control` argument), our mark there is removed, and our other marks become copies
    of the caller's.
    """
    in_system = [block for block in system if "cache_control" in block] if isinstance(system, list) else []
    caller_marks = sum("cache_control" in tool for tool in options.tools)
    mark = options.extra.get("cache_control")
    if mark is not None:
        caller_marks += 1
        if in_messages and in_messages[-1] is last:
            del in_messages.pop()["cache_control"]
        if isinstance(mark, Mapping):
            for block in in_system + in_messages:
                block["cache_control"] = dict(mark)
    if caller_marks > MAX_MARKS:
        raise ArgumentError(
            "cache_control", caller_marks, f"a request may have {MAX_MARKS} marks, including those of its tools; leave some out"
        )
    # This request reads the cache at one of the last two marks, the next request at the other. Earlier marks serve if both are lost.
    by_usefulness = [*in_messages[:-2], *in_system, *in_messages[-2:]]
    for block in by_usefulness[: max(0, len(by_usefulness) + caller_marks - MAX_MARKS)]:
        del block["cache_control"]
