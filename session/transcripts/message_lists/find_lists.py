"""Finds the lists of messages in a JSON document, and the objects around each. The messages themselves are read elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from session.transcripts.values import JsonObject
from session.transcripts.writer import is_message

DEPTH_MAX = 12
"""Levels of nesting to search."""

PREFERRED_NAMES = ("messages", "traj", "input", "contents", "history", "conversation", "conversations", "chat", "prompt")
"""Of several lists in one object, the first of these is the conversation. If none has such a name, all of them are."""
RUN_NAMES = ("simulations", "simulation_run", "samples")
"""In a benchmark's log, the conversations are below these names; everything else describes them."""
ENVELOPE_NAMES = ("request", "body", "params", "converse", "input", "payload", "kwargs", "llm_request")
"""Names of the request in a log record. The fields next to it, such as the response, belong to the request."""
DISPLAY = "messages_display"
"""Name of a conversation written out as one text, as in tau-bench."""
REQUEST_OPTIONS = ("instructions", "previous_response_id", "conversation", "max_output_tokens", "reasoning", "store")
"""An object with one of these and a text as `input` is a request. Without them it may be a request for embeddings."""


@dataclass(frozen=True, slots=True)
class MessageList:
    """One list of messages.

    Attributes:
        messages: The list, unchanged; for `DISPLAY` the text.
        name: The name of the field that contains it; empty if it is a list member or the whole document.
        parents: The object that contains it, then that object's parents as far as they belong to the same request. Empty if it
            is a list member or the whole document.
        log: The benchmark's log that the conversation is from; otherwise empty.
    """

    messages: list[object] | str
    name: str
    parents: tuple[JsonObject, ...]
    log: JsonObject = field(default_factory=dict)


def is_message_list(value: object) -> bool:
    """Return True if at least half of the members are messages, including the first or the second."""
    if not isinstance(value, list) or not any(is_message(member) for member in value[:2]):
        return False
    return 2 * sum(is_message(member) for member in value) >= len(value)


def find_lists(document: object) -> Iterator[MessageList]:
    """Yield the lists of messages in a document, in order. Inside an object with a list, nothing else is searched.

    Args:
        document: Any JSON value, nested however deeply.
    """
    stack: list[tuple[object, tuple[JsonObject, ...], int, JsonObject]] = [(document, (), 0, {})]
    while stack:
        value, outer_parents, depth, log = stack.pop()
        if isinstance(value, list):
            if is_message_list(value):
                yield MessageList(value, "", (), log)
            elif depth < DEPTH_MAX:
                stack += [(member, (), depth + 1, log) for member in reversed(value) if isinstance(member, dict | list)]
        elif isinstance(value, dict):
            parents = (value, *outer_parents)
            if names := _own_lists(value, is_in_envelope=bool(outer_parents)):
                for name in names:
                    yield MessageList(value[name], name, parents, log)
            elif depth < DEPTH_MAX:
                names = _envelope(value) or tuple(name for name in RUN_NAMES if isinstance(value.get(name), dict | list)) or tuple(value)
                log = value if names[:1] and names[0] in RUN_NAMES else log
                members = [(value[name], parents if name in ENVELOPE_NAMES else (), depth + 1, log) for name in reversed(names)]
                stack += [member for member in members if isinstance(member[0], dict | list)]


def _envelope(value: JsonObject) -> tuple[str, ...]:
    """Return the name of the field that contains the request, if the object is a log record of one."""
    for name in ENVELOPE_NAMES:
        inner = value.get(name)
        for _ in range(len(ENVELOPE_NAMES)):
            if not isinstance(inner, dict):
                break
            if _own_lists(inner, is_in_envelope=True):
                return (name,)
            inner = next((inner[inner_name] for inner_name in ENVELOPE_NAMES if isinstance(inner.get(inner_name), dict)), None)
    return ()


def _own_lists(value: JsonObject, *, is_in_envelope: bool) -> tuple[str, ...]:
    """Return the names of an object's own lists of messages."""
    names = tuple(name for name, member in value.items() if is_message_list(member))
    if names:
        preferred = next((name for name in PREFERRED_NAMES if name in names), None)
        return names if preferred is None else (preferred,)
    if isinstance(value.get(DISPLAY), str):
        return (DISPLAY,)
    if isinstance(value.get("input"), str) and "model" in value and (is_in_envelope or any(name in value for name in REQUEST_OPTIONS)):
        return ("input",)
    return ()
