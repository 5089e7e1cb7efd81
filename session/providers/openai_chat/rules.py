"""The validator for Chat Completions: the rules O1 to O3 of docs/provider-rules.md, a function each or several, and O0, the shape.

It shares no code with the converter it checks. The limits of ids and names are those of the API's error messages: `string too
long. Expected a string with maximum length 40`, `does not match the pattern '^[a-zA-Z0-9_-]+$'`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from session.errors import short
from session.providers.coded import document_fault, image_faults
from session.providers.violations import Violation

from .shape import Payload, read_payload

CALLS = 128
"""O2: calls a message."""
STRING = 10_485_760
"""O2: characters of one string."""
IMAGE = 20 * 1024 * 1024
"""O2: characters of an image's data URL, which is no such string."""
ID_LENGTH = 40
"""O1: characters of a call's id."""

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
REASONING_MODEL = re.compile(r"(.*/)?(o\d|gpt-5)(?!.*chat)")
"""O3: models that think; the `chat` ones of that name do not."""
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL | re.IGNORECASE)
_ALLOWED = {
    "user": {"text", "image_url", "file", "input_audio"},
    "assistant": {"text", "refusal"},
}
"""O2: by role, the types of parts it may hold; the others hold texts."""


def validate_openai_chat(payload: object) -> list[Violation]:
    """What Chat Completions would refuse in this payload; an empty list if nothing.

        validate_openai_chat(session.to_openai_messages())
        validate_openai_chat({"model": …, "messages": …})

    Args:
        payload: The messages as the converter returns them, or a whole request. Of a whole request is asked in addition
            that there are messages, and that a model that thinks is given no system message.

    Raises:
        FormatError: It is neither.
    """
    laid_out = read_payload(payload)
    return [*laid_out.faults, *(violation for rule in RULES for violation in rule(laid_out))]


def o1_calls_are_answered(payload: Payload) -> Iterator[Violation]:
    """O1: an assistant message with tool_calls is followed by tool messages that answer each of them."""
    answered: set[str | None] = set()  # by the run of tool messages behind the place we are at
    found: list[Violation] = []
    for message in reversed(payload.messages):
        if message.role == "tool":
            answered.add(message.answers)
            continue
        found.extend(
            Violation("O1", call.where, f"tool_call {short(call.id)} without a tool message right after its message")
            for call in reversed(message.calls)
            if call.id not in answered
        )
        answered = set()
    yield from reversed(found)


def o1_tool_messages_have_calls(payload: Payload) -> Iterator[Violation]:
    """O1: every tool message answers a call of the assistant message before it and its like, and each call is answered once."""
    waiting: Counter[str] = Counter()
    for message in payload.messages:
        if message.role == "tool":
            if message.answers is not None and waiting[message.answers] > 0:
                waiting[message.answers] -= 1
            elif message.answers is not None:
                yield Violation("O1", message.where, f"no tool_call {short(message.answers)} in the message before waits for this answer")
        else:
            waiting = Counter(call.id for call in message.calls)


def o1_ids(payload: Payload) -> Iterator[Violation]:
    """O1: the ids of a message's calls are not empty, not longer than 40 characters, and each its own."""
    for message in payload.messages:
        seen = set()
        for call in message.calls:
            if not 0 < len(call.id) <= ID_LENGTH:
                yield Violation("O1", f"{call.where}.id", f"{len(call.id)} characters; an id has 1 to {ID_LENGTH}")
            if call.id in seen:
                yield Violation("O1", f"{call.where}.id", f"two calls have the id {short(call.id)}")
            seen.add(call.id)


def o2_how_many_calls(payload: Payload) -> Iterator[Violation]:
    """O2: a message has at most 128 calls."""
    for message in payload.messages:
        if len(message.calls) > CALLS:
            yield Violation("O2", message.calls[CALLS].where, f"{len(message.calls)} calls; a message has at most {CALLS}")


def o2_names(payload: Payload) -> Iterator[Violation]:
    """O2: the name of a tool has 1 to 64 letters, digits, "_" and "-"."""
    for message in payload.messages:
        for call in message.calls:
            if not NAME.fullmatch(call.name):
                yield Violation("O2", call.where, f"{short(call.name)} should match ^[a-zA-Z0-9_-]{{1,64}}$")


def o2_strings(payload: Payload) -> Iterator[Violation]:
    """O2: one string has at most 10,485,760 characters."""
    for _, part in payload.every_part():
        text = part.data.get(part.type)
        if isinstance(text, str) and len(text) > STRING:
            yield Violation("O2", part.where, f"string too long: {len(text)} characters; one has at most {STRING}")
    for message in payload.messages:
        for call in message.calls:
            if len(call.given) > STRING:
                yield Violation("O2", call.where, f"string too long: {len(call.given)} characters; one has at most {STRING}")


def o2_where_parts_stand(payload: Payload) -> Iterator[Violation]:
    """O2: images, files and sounds are in user messages only, refusals in the assistant's; all others hold texts."""
    for message, part in payload.every_part():
        if part.type not in _ALLOWED.get(message.role, {"text"}):
            yield Violation("O2", part.where, f"a part of type {part.type} cannot stand in a message of role {message.role}")


def o2_image_bytes(payload: Payload) -> Iterator[Violation]:
    """O2: an image is fetched from http, or comes as base64 of one of four formats, whole, labelled as what it is, of at most 20 MB."""
    for _, part in payload.every_part():
        if part.type == "image_url":
            for problem in image_problems(part.data["image_url"]["url"]):
                yield Violation("O2", part.where, problem)


def o2_file_bytes(payload: Payload) -> Iterator[Violation]:
    """O2: a file that comes as base64 is a whole one of its type."""
    for _, part in payload.every_part():
        if part.type == "file" and (problem := file_problem(part.data["file"].get("file_data"))) is not None:
            yield Violation("O2", part.where, problem)


def o3_developer_messages(payload: Payload) -> Iterator[Violation]:
    """O3: a model that thinks takes developer messages where others take system.

    The first such models refused system messages; later ones read them as the developer's. What is right for all is asked for.
    """
    if payload.reasons or REASONING_MODEL.match(payload.model):
        for message in payload.messages:
            if message.role == "system":
                yield Violation("O3", message.where, "a system message for a reasoning model, which takes developer messages")


RULES: tuple[Callable[[Payload], Iterator[Violation]], ...] = (
    o1_calls_are_answered,
    o1_tool_messages_have_calls,
    o1_ids,
    o2_how_many_calls,
    o2_names,
    o2_strings,
    o2_where_parts_stand,
    o2_image_bytes,
    o2_file_bytes,
    o3_developer_messages,
)


def image_problems(url: str) -> Iterator[str]:
    """What is wrong with the address of an image; also for the rules of the Responses API."""
    if url[:7].lower() == "http://" or url[:8].lower() == "https://":
        if len(url) > STRING:
            yield f"string too long: {len(url)} characters; one has at most {STRING}"
        return
    found = _DATA_URL.fullmatch(url)
    if found is None:
        yield "neither an http address nor a base64 data URL"
        return
    if len(url) > IMAGE:
        yield f"{len(url)} characters; an image has at most {IMAGE}"
    yield from image_faults(found[1].lower(), found[2])


def file_problem(data_url: object) -> str | None:
    """Return what is wrong with the bytes of a file; also for the rules of the Responses API."""
    match = _DATA_URL.fullmatch(data_url) if isinstance(data_url, str) else None
    return None if match is None else document_fault(match[1].lower(), match[2])
