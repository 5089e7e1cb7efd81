"""Tool calls of a session's last turn, counted for the loop that runs them."""

from __future__ import annotations

from dataclasses import dataclass

from session.items import FunctionCall, Message, MessageCategory
from session.session import Session

from ..errors import ArgumentError


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Tool calls of a session's last turn.

    Attributes:
        used: Calls that the model made since the last user message, refused ones included.
        left: Calls that it may still make in this turn, 0 or more.
    """

    used: int
    left: int


def tool_calls_of(session: Session, limit: int) -> ToolCalls:
    """Return the tool calls since the last user message. A user message of category CONTEXT does not begin a turn.

    Raises ArgumentError if this is not a session.
    """
    if not isinstance(session, Session):
        raise ArgumentError("session", type(session), "pass a Session")
    used = 0
    for item in reversed(session.items):
        if isinstance(item, Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT:
            break
        used += isinstance(item, FunctionCall)
    return ToolCalls(used, max(0, limit - used))
