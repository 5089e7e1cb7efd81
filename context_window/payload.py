"""A view as a request for Anthropic's Messages API: what is in it, how long the answer may be, which cache marks stay. Counts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Self

from session.session import Session

from .config import check_amount
from .errors import BudgetError
from .models import describe_model
from .whole import as_whole

MOST_MARKS = 4
"""Blocks with `cache_control` that a request may have (docs/provider-rules.md, A7)."""
LEAST_ANSWER = 1_024
"""Tokens of an answer that are asked for, if so many were, even where the window seems to have less: the count may be too high."""
OURS = {"messages": "the session holds the messages", "system": "add it to the session as its system message"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request is to have beside the view.

    Attributes:
        model: The model's name.
        max_tokens: Tokens that the caller wants at the most.
        tools: Their definitions.
        more: What is sent as it is.
    """

    model: str
    max_tokens: int
    tools: list[dict[str, Any]]
    more: Mapping[str, Any]

    @classmethod
    def checked(cls, model: object, max_tokens: object, tools: list[dict[str, Any]], more: Mapping[str, Any]) -> Self:
        """The same, where it makes sense.

        Raises:
            BudgetError: It does not.
        """
        if not isinstance(model, str) or not model:
            raise BudgetError("model", model, "pass the model's name as a text")
        for name, remedy in OURS.items():
            if name in more:
                raise BudgetError(name, type(more[name]), remedy)
        return cls(model, check_amount("max_tokens", max_tokens, least=1), tools, more)


def payload_of(view: Session, asked: Asked, tokens: int, uncertainty: float) -> dict[str, Any]:
    """The request: as a dict for `client.messages.create(**request)`.

    Args:
        view: What the model is to see.
        asked: What the request has beside it.
        tokens: What the request costs.
        uncertainty: The part of that by which it may be off.

    Raises:
        BudgetError: The view has no messages, the answer has no room beside the thinking that is asked for, or there are too many marks
            of the caller's own.
    """
    messages, system = view.to_anthropic_messages(caching=True)
    if not messages:
        raise BudgetError("session", len(view.items), "its view has no messages: add what the user says first")
    _limit_marks(messages, system, asked)
    request: dict[str, Any] = {"model": asked.model, "max_tokens": _answer_tokens(asked, tokens, uncertainty)}
    if system:
        request["system"] = system
    request["messages"] = messages
    if asked.tools:
        request["tools"] = asked.tools
    return {**request, **asked.more}


def _answer_tokens(asked: Asked, tokens: int, uncertainty: float) -> int:
    """The most tokens that the answer may have: what was asked for, what the model can, what its window has left."""
    model, most = describe_model(asked.model), asked.max_tokens
    if model.output_limit is not None:
        most = min(most, model.output_limit)
    if model.window is not None:
        room = model.window - tokens - ceil(tokens * uncertainty)
        most = min(most, max(room, LEAST_ANSWER))
    thinking = asked.more.get("thinking")
    thoughts = as_whole(thinking.get("budget_tokens")) if isinstance(thinking, Mapping) else None
    if thoughts is not None and thoughts >= most:
        raise BudgetError(
            "thinking.budget_tokens",
            thoughts,
            f"it must be less than the {most:,} tokens that the answer may have; lower it, or raise output_reserve of the ContextWindow",
        )
    return most


def _limit_marks(messages: list[dict[str, Any]], system: str | list[dict[str, Any]] | None, asked: Asked) -> None:
    """Takes cache marks off the view until the whole request has at most four: first those that are worth the least.

    Where the caller marks the end of the request (`cache_control` beside the messages), ours there goes, and the others are made alike.
    """
    in_system = [block for block in system if "cache_control" in block] if isinstance(system, list) else []
    in_messages = [block for message in messages for block in message["content"] if "cache_control" in block]
    theirs = sum("cache_control" in tool for tool in asked.tools)
    kind = asked.more.get("cache_control")
    if kind is not None:
        theirs += 1
        if in_messages and in_messages[-1] is messages[-1]["content"][-1]:
            del in_messages.pop()["cache_control"]
        if isinstance(kind, Mapping):
            for block in in_system + in_messages:
                block["cache_control"] = dict(kind)
    if theirs > MOST_MARKS:
        raise BudgetError("cache_control", theirs, f"a request may have {MOST_MARKS}, those of its tools among them; leave some out")
    # The last two are where this request reads from and the next one will; the one before them was for when both are lost.
    by_worth = [*in_messages[:-2], *in_system, *in_messages[-2:]]
    for block in by_worth[: max(0, len(by_worth) + theirs - MOST_MARKS)]:
        del block["cache_control"]
