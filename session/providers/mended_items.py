"""`mended_items`: the items of a view as a request has them, for adapters, which write messages without a converter.

The converters mend the same in `conversation.py` and in each format's `write.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.session import Session
from session.units import is_answer, is_blank

from .additions import INTERRUPTED

CARRIED = "carried"
"""Key of `extra` by which an adapter says that an item has something to send, although it is a message without a text, or reasoning that
nothing follows: the call of a tool that runs at the provider."""
CARRIERS = frozenset({"anthropic_blocks", "google_parts", "openai_item", "thought_signature", CARRIED})
"""Keys of `extra` that an item has if there is something to send for it."""
_SUFFIX = "-interrupted"


def mended_items(view: Session) -> list[Item]:
    """Return the items of a view without those that no request may have, and with those that a request must have.

    1. Blank messages are left out, and reasoning that nothing of its response follows.
    2. A call without an output has an error output, `additions.INTERRUPTED`, right after the items of its response. Its id is the call's
       with "-interrupted": the same call gets the same output in every request (`interrupted_call_id`).

    All other items are the view's own objects, in its order.
    """
    breaks, ends, unanswered = view.response_breaks, view.request_ends, _unanswered(view.items)
    items: list[Item] = []
    response: list[Item] = []
    for item in view.items:
        last = response[-1] if response else None
        goes_on = is_answer(item) and last is not None and last.agent_id == item.agent_id and last.id not in ends and item.id not in breaks
        if response and not goes_on:  # rule 1 of `session/units.py`
            items += _mended_response(response, unanswered)
            response = []
        if is_answer(item):
            response.append(item)
        elif not _is_blank(item):
            items.append(item)
    return [*items, *_mended_response(response, unanswered)]


def interrupted_call_id(item: Item) -> str | None:
    """Return the id of the call whose output this is, if `mended_items` has added it; None for any other item."""
    return item.id.removesuffix(_SUFFIX) if isinstance(item, FunctionCallOutput) and item.id.endswith(_SUFFIX) else None


def _unanswered(items: Sequence[Item]) -> set[str]:
    """Return the ids of the calls without an output. An output answers the last call before it that waits for one with its call id."""
    waiting: dict[str, list[str]] = {}
    for item in items:
        if isinstance(item, FunctionCall):
            waiting.setdefault(item.call_id, []).append(item.id)
        elif isinstance(item, FunctionCallOutput) and waiting.get(item.call_id):
            waiting[item.call_id].pop()
    return {call for calls in waiting.values() for call in calls}


def _mended_response(response: Sequence[Item], unanswered: Collection[str]) -> list[Item]:
    items = [item for item in response if not _is_blank(item)]
    while items and isinstance(items[-1], Reasoning) and CARRIERS.isdisjoint(items[-1].extra):
        items.pop()
    calls = [item for item in response if isinstance(item, FunctionCall) and item.id in unanswered]
    return [*items, *map(_interrupted, calls)]


def _interrupted(call: FunctionCall) -> FunctionCallOutput:
    id = f"{call.id}{_SUFFIX}"
    return FunctionCallOutput(
        call.name, INTERRUPTED, call.call_id, is_error=True, agent_id=call.agent_id, id=id, created_at=call.created_at
    )


def _is_blank(item: Item) -> bool:
    return isinstance(item, Message) and is_blank(item) and CARRIERS.isdisjoint(item.extra)
