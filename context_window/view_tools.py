"""Tools with which a model says what it still needs: keep a result, release one, have the conversation summed up.

Their calls and results are in the log, and decide from there like any rule for a tool (`decision/tool_rules.py`). So the same log gives the
same view, with or without these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning
from session.json_strings import object_of
from session.session import Session

from .decision.tool_rules import COMPACT, names_of_result

ViewTool: TypeAlias = Callable[[str], str]
"""A function for a loop's tools."""


class UnknownResultError(Exception):
    """The model has named no result of the conversation. The loop shows it the text of this error."""


def view_tools(session: Session) -> list[ViewTool]:
    """Return three tools for a turn's model: `keep_in_view`, `release_from_view` and `compact_conversation`.

        await run_turn(session, "…", model=model, tools=[*tools, *view_tools(session)], manager=manager)

    A kept result is not cleared, and goes only when nothing else is left to take. A released one is cleared first. The conversation is
    summed up before the next request, if a summary saves anything. No wish makes a view exceed its budget.

    Args:
        session: The log of the turn.
    """

    def keep_in_view(what: str) -> str:
        """Keep a tool's result in view while the conversation is shortened.

        Args:
            what: The file or the command that the result is about, or its recall id.
        """
        return f"{_count(session, what)} will stay."

    def release_from_view(what: str) -> str:
        """Say that you no longer need a tool's result. It is taken out first when room is needed.

        Args:
            what: The file or the command that the result is about, or its recall id.
        """
        return f"{_count(session, what)} will go first."

    def compact_conversation(keep: str = "") -> str:
        """Have the older part of the conversation summed up now, as at the end of a piece of work.

        Args:
            keep: What the summary must have in full detail.
        """
        return f"It will be summed up{' with ' + keep if keep else ''} before you go on."

    return [keep_in_view, release_from_view, compact_conversation]


def compaction_wish(session: Session) -> str | None:
    """Return what a summary must keep in detail if the model's last response asks for one; "" for nothing special, None if it does not."""
    answered: set[str] = set()
    for item in reversed(session.items):
        if isinstance(item, FunctionCallOutput) and item.name == COMPACT and not item.is_error:
            answered.add(item.call_id)
        elif isinstance(item, FunctionCall) and item.call_id in answered:
            return str((object_of(item.arguments) or {}).get("keep") or "")
        elif isinstance(item, Compaction | Reasoning) or (isinstance(item, Message) and item.role == "assistant"):
            return None
    return None


def _count(session: Session, what: str) -> str:
    calls = {item.call_id: item for item in session.items if isinstance(item, FunctionCall)}
    outputs = [item for item in session.items if isinstance(item, FunctionCallOutput) and item.call_id in calls]
    count = sum(what in names_of_result(calls[output.call_id], output) for output in outputs)
    if not count:
        raise UnknownResultError(f"no result is about {what[:200]!r}; pass the path or the command as in its call, or a recall id")
    return f"{count:,} result{'s' if count > 1 else ''}"
