"""Find what a log still lacks: an answer of the model, or outputs of tool calls. Pure functions of the items; nothing is run here."""

from __future__ import annotations

from session.items import AgentConfigUpdate, FunctionCall, FunctionCallOutput, Item, Message
from session.session import Session
from session.units import is_answer, is_summary


def awaits_model(session: Session) -> bool:
    """True if the model has something to answer: a user message, a tool output, a handoff, or a call without an output.

    Such a call counts because the model must learn that it was interrupted. A handoff counts because the receiving agent is to speak
    next. Instructions and summaries do not count.
    """
    last_item = next((item for item in reversed(session.items) if not _needs_no_answer(item)), None)
    return last_item is not None and (isinstance(last_item, FunctionCall) or not is_answer(last_item))


def unanswered_calls(session: Session) -> list[FunctionCall]:
    """Return the calls since the last user message that have no output, in order."""
    calls: dict[str, FunctionCall] = {}
    turn_start = next((position for position in reversed(range(len(session.items))) if _is_user_message(session.items[position])), 0)
    for item in session.items[turn_start:]:
        if isinstance(item, FunctionCall):
            calls[item.call_id] = item
        elif isinstance(item, FunctionCallOutput):
            calls.pop(item.call_id, None)
    return list(calls.values())


def _needs_no_answer(item: Item) -> bool:
    is_instruction = isinstance(item, AgentConfigUpdate) or (isinstance(item, Message) and item.role in ("system", "developer"))
    return is_instruction or is_summary(item)


def _is_user_message(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "user"
