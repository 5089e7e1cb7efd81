"""Where in a JSON document lists of messages lie, and what stands around each. What the messages say is read elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from session.transcripts.values import JsonObject
from session.transcripts.writer import is_message

DEPTH = 12
"""Levels below which no list is looked for."""

NAMES = ("messages", "traj", "input", "contents", "history", "conversation", "conversations", "chat", "prompt")
"""Where the list of an object is that has several: the first of these. All of them, where none is so named."""
RUNS = ("simulations", "simulation_run", "samples")
"""Where a benchmark's log has these, they are the conversations, and all else is about them."""
ENVELOPES = ("request", "body", "params", "converse", "input", "payload", "kwargs", "llm_request")
"""What the request is in, in a record of it: what stands beside the envelope is about the request."""
DISPLAY = "messages_display"
"""Conversations written out as one text, as tau-bench has them."""
ASKING = ("instructions", "previous_response_id", "conversation", "max_output_tokens", "reasoning", "store")
"""An object with one of these and a text as `input` is a request; without, it may be one for embeddings."""


@dataclass(frozen=True, slots=True)
class Found:
    """One list of messages.

    Attributes:
        messages: The list, as it stands there; for `DISPLAY` the text.
        name: Its name in the object it is in; empty for one in a list, or alone.
        around: The objects it is in, from the one that holds it outwards as far as they are about the same request. Empty for
            one in a list, or alone.
        log: The benchmark's log that the conversation is one of; empty elsewhere.
    """

    messages: list[object] | str
    name: str
    around: tuple[JsonObject, ...]
    log: JsonObject = field(default_factory=dict)


def is_list(value: object) -> bool:
    """Whether the value is a list of messages: at least half of its members are, the first or the second among them."""
    if not isinstance(value, list) or not any(is_message(member) for member in value[:2]):
        return False
    return 2 * sum(is_message(member) for member in value) >= len(value)


def find(document: object) -> Iterator[Found]:
    """The lists of messages in a document, in order. What lies inside or beside one in the same object is not looked at.

    Args:
        document: Any JSON value, nested however deeply.
    """
    waiting: list[tuple[object, tuple[JsonObject, ...], int, JsonObject]] = [(document, (), 0, {})]
    while waiting:
        value, around, depth, log = waiting.pop()
        if isinstance(value, list):
            if is_list(value):
                yield Found(value, "", (), log)
            elif depth < DEPTH:
                waiting += [(member, (), depth + 1, log) for member in reversed(value) if isinstance(member, dict | list)]
        elif isinstance(value, dict):
            here = (value, *around)
            if names := _lists_in(value, asked=bool(around)):
                for name in names:
                    yield Found(value[name], name, here, log)
            elif depth < DEPTH:
                names = _request_in(value) or tuple(name for name in RUNS if isinstance(value.get(name), dict | list)) or tuple(value)
                log = value if names[:1] and names[0] in RUNS else log
                members = [(value[name], here if name in ENVELOPES else (), depth + 1, log) for name in reversed(names)]
                waiting += [one for one in members if isinstance(one[0], dict | list)]


def _request_in(value: JsonObject) -> tuple[str, ...]:
    """The name of the envelope that has the request, in a record of one: what stands beside it is its answer."""
    for name in ENVELOPES:
        inner = value.get(name)
        for _ in range(len(ENVELOPES)):
            if not isinstance(inner, dict):
                break
            if _lists_in(inner, asked=True):
                return (name,)
            inner = next((inner[one] for one in ENVELOPES if isinstance(inner.get(one), dict)), None)
    return ()


def _lists_in(value: JsonObject, *, asked: bool) -> tuple[str, ...]:
    """The names of an object's own lists of messages; `asked` where it stands in the envelope of a request."""
    names = tuple(name for name, member in value.items() if is_list(member))
    if names:
        chosen = next((name for name in NAMES if name in names), None)
        return names if chosen is None else (chosen,)
    if isinstance(value.get(DISPLAY), str):
        return (DISPLAY,)
    if isinstance(value.get("input"), str) and "model" in value and (asked or any(name in value for name in ASKING)):
        return ("input",)
    return ()
