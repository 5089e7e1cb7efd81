"""Validate payloads for Chat Completions: rules O1 to O3 of docs/provider-rules.md, and the shape (O0).

It shares no code with the converter it checks. The limits of ids and names are from the API's error messages: `string too
long. Expected a string with maximum length 40`, `does not match the pattern '^[a-zA-Z0-9_-]+$'`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from session.errors import short
from session.providers.encoded_media import document_fault, image_faults
from session.providers.violations import Violation, rules_in

from .schema import ChatPayload, read_payload

CALLS = 128
"""O2: maximum calls in a message."""
STRING = 10_485_760
"""O2: maximum characters of one string."""
IMAGE = 20 * 1024 * 1024
"""O2: maximum characters of an image's data URL, to which the limit of strings does not apply."""
ID_LENGTH = 40
"""O1: maximum characters of a call id."""

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
REASONING_MODEL = re.compile(r"(.*/)?(o\d|gpt-5)(?!.*chat)")
"""O3: reasoning models. Models of these families with `chat` in their name do not reason."""
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL | re.IGNORECASE)
_ALLOWED = {
    "user": {"text", "image_url", "file", "input_audio"},
    "assistant": {"text", "refusal"},
}
"""O2: the types of parts that a role may hold. Other roles hold only texts."""


def validate_openai_chat(payload: object) -> list[Violation]:
    """Return the rules that a payload breaks; Chat Completions would refuse it. An empty list if it is valid.

        validate_openai_chat(session.to_openai_messages())
        validate_openai_chat({"model": …, "messages": …})

    Args:
        payload: The messages as the converter returns them, or a whole request. A whole request must also have messages, and no system
            message if its model reasons.

    Raises:
        FormatError: The payload is neither.
    """
    parsed = read_payload(payload)
    return [*parsed.faults, *(violation for rule in RULES for violation in rule(parsed))]


def o1_calls_are_answered(payload: ChatPayload) -> Iterator[Violation]:
    """O1: an assistant message with tool_calls is followed by tool messages that answer each of them."""
    answered_ids: set[str | None] = set()  # by the tool messages right after the current message
    violations: list[Violation] = []
    for message in reversed(payload.messages):
        if message.role == "tool":
            answered_ids.add(message.answers)
            continue
        violations.extend(
            Violation("O1", call.where, f"tool_call {short(call.id)} without a tool message right after its message")
            for call in reversed(message.calls)
            if call.id not in answered_ids
        )
        answered_ids = set()
    yield from reversed(violations)


def o1_tool_messages_have_calls(payload: ChatPayload) -> Iterator[Violation]:
    """O1: every tool message answers a call of the assistant message before the run of tool messages; each call is answered once."""
    open_calls: Counter[str] = Counter()
    for message in payload.messages:
        if message.role == "tool":
            if message.answers is not None and open_calls[message.answers] > 0:
                open_calls[message.answers] -= 1
            elif message.answers is not None:
                yield Violation("O1", message.where, f"no tool_call {short(message.answers)} in the message before is still open")
        else:
            open_calls = Counter(call.id for call in message.calls)


def o1_ids(payload: ChatPayload) -> Iterator[Violation]:
    """O1: the ids of a message's calls have 1 to 40 characters and are unique."""
    for message in payload.messages:
        ids = set()
        for call in message.calls:
            if not 0 < len(call.id) <= ID_LENGTH:
                yield Violation("O1", f"{call.where}.id", f"{len(call.id)} characters; an id has 1 to {ID_LENGTH}")
            if call.id in ids:
                yield Violation("O1", f"{call.where}.id", f"two calls have the id {short(call.id)}")
            ids.add(call.id)


def o2_call_count(payload: ChatPayload) -> Iterator[Violation]:
    """O2: a message has at most 128 calls."""
    for message in payload.messages:
        if len(message.calls) > CALLS:
            yield Violation("O2", message.calls[CALLS].where, f"{len(message.calls)} calls; a message has at most {CALLS}")


def o2_names(payload: ChatPayload) -> Iterator[Violation]:
    """O2: a tool's name has 1 to 64 letters, digits, "_" and "-"."""
    for message in payload.messages:
        for call in message.calls:
            if not NAME.fullmatch(call.name):
                yield Violation("O2", call.where, f"{short(call.name)} should match ^[a-zA-Z0-9_-]{{1,64}}$")


def o2_strings(payload: ChatPayload) -> Iterator[Violation]:
    """O2: one string has at most 10,485,760 characters."""
    for _, part in payload.every_part():
        text = part.data.get(part.type)
        if isinstance(text, str) and len(text) > STRING:
            yield Violation("O2", part.where, f"string too long: {len(text)} characters; one has at most {STRING}")
    for message in payload.messages:
        for call in message.calls:
            if len(call.arguments) > STRING:
                yield Violation("O2", call.where, f"string too long: {len(call.arguments)} characters; one has at most {STRING}")


def o2_part_types(payload: ChatPayload) -> Iterator[Violation]:
    """O2: only user messages hold images, files and sounds; only the assistant's hold refusals; all others hold texts."""
    for message, part in payload.every_part():
        if part.type not in _ALLOWED.get(message.role, {"text"}):
            yield Violation("O2", part.where, f"a part of type {part.type} is not allowed in a message of role {message.role}")


def o2_image_bytes(payload: ChatPayload) -> Iterator[Violation]:
    """O2: an image is an http URL, or intact base64 of one of four formats, correctly labelled, of at most 20 MB."""
    for _, part in payload.every_part():
        if part.type == "image_url":
            for problem in image_problems(part.data["image_url"]["url"]):
                yield Violation("O2", part.where, problem)


def o2_file_bytes(payload: ChatPayload) -> Iterator[Violation]:
    """O2: a base64 file is an intact file of its type."""
    for _, part in payload.every_part():
        if part.type == "file" and (problem := file_problem(part.data["file"].get("file_data"))) is not None:
            yield Violation("O2", part.where, problem)


def o3_developer_messages(payload: ChatPayload) -> Iterator[Violation]:
    """O3: a reasoning model takes developer messages instead of system messages.

    The first reasoning models refused system messages; later ones treat them as the developer's. Developer messages are right for all.
    """
    if payload.sets_reasoning or REASONING_MODEL.match(payload.model):
        for message in payload.messages:
            if message.role == "system":
                yield Violation("O3", message.where, "a system message for a reasoning model, which takes developer messages")


RULES: tuple[Callable[[ChatPayload], Iterator[Violation]], ...] = rules_in(vars())


def image_problems(url: str) -> Iterator[str]:
    """Yield each fault of an image's URL. The rules of the Responses API use it too."""
    if url[:7].lower() == "http://" or url[:8].lower() == "https://":
        if len(url) > STRING:
            yield f"string too long: {len(url)} characters; one has at most {STRING}"
        return
    match = _DATA_URL.fullmatch(url)
    if match is None:
        yield "neither an http URL nor a base64 data URL"
        return
    if len(url) > IMAGE:
        yield f"{len(url)} characters; an image has at most {IMAGE}"
    yield from image_faults(match[1].lower(), match[2])


def file_problem(data_url: object) -> str | None:
    """Return the fault in the bytes of a file, or None. The rules of the Responses API use it too."""
    match = _DATA_URL.fullmatch(data_url) if isinstance(data_url, str) else None
    return None if match is None else document_fault(match[1].lower(), match[2])
