"""What of a log waits: for the model, which is to answer the user or its tools, or for a tool. Items in, answers out; nothing is asked."""

from __future__ import annotations

from session.items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message
from session.session import Session
from session.units import is_answer


def awaits_model(session: Session) -> bool:
    """Whether something was said that the model has not answered.

    A call that was made counts: the model is to be told that it was interrupted. Rules, summaries and handoffs say nothing.
    """
    said = next((item for item in reversed(session.items) if not _is_beside(item)), None)
    return said is not None and (isinstance(said, FunctionCall) or not is_answer(said))


def unanswered(session: Session) -> list[FunctionCall]:
    """The calls since the last user message that have no output, in order."""
    waiting: dict[str, FunctionCall] = {}
    last = next((place for place in reversed(range(len(session.items))) if _asks(session.items[place])), 0)
    for item in session.items[last:]:
        if isinstance(item, FunctionCall):
            waiting[item.call_id] = item
        elif isinstance(item, FunctionCallOutput):
            waiting.pop(item.call_id, None)
    return list(waiting.values())


def _is_beside(item: Item) -> bool:
    return isinstance(item, AgentConfigUpdate | AgentHandoff | Compaction) or (isinstance(item, Message) and item.role == "system")


def _asks(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "user"
