"""Validate payloads for the Responses API: rules R1 and R2 of docs/provider-rules.md, and the shape (R0).

Not checked, because a payload does not show it: an item with an id whose reasoning is missing (the converse of R2). It shares no code with
the converter it checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from session.errors import short
from session.providers.openai_chat.rules import file_problem, image_problems
from session.providers.violations import Violation, rules_in, text_of

from .schema import ResponsesItem, ResponsesPayload, read_payload

STRING = 10_485_760
"""R0: maximum characters of one string."""
ID_LENGTH = 64
"""R1: maximum characters of a call id."""
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")

CALLS = {
    "function_call": ("call_id", "function_call_output"),
    "custom_tool_call": ("call_id", "custom_tool_call_output"),
    "computer_call": ("call_id", "computer_call_output"),
    "local_shell_call": ("call_id", "local_shell_call_output"),
    "shell_call": ("call_id", "shell_call_output"),
    "apply_patch_call": ("call_id", "apply_patch_call_output"),
    "tool_search_call": ("call_id", "tool_search_output"),
}
"""R1: for each type of call, the field of its id and the type of its output."""
OUTPUTS = {output: "id" if output == "local_shell_call_output" else "call_id" for _, output in CALLS.values()}
_NOT_BY_MODEL = frozenset({*OUTPUTS, "additional_tools", "compaction", "configuration_update", "item_reference", "mcp_approval_response"})
"""R2: the items that do not come from the model's own response."""


def validate_openai_responses(payload: object) -> list[Violation]:
    """Return the rules that a payload breaks; the Responses API would refuse it. An empty list if it is valid.

        validate_openai_responses(session.to_openai_responses())
        validate_openai_responses({"model": …, "input": …})

    Args:
        payload: The items as the converter returns them, or a whole request. A whole request must also have items. If it continues a
            stored response, it may answer calls that it does not hold.

    Raises:
        FormatError: The payload is neither.
    """
    parsed = read_payload(payload)
    return [*parsed.faults, *(violation for rule in RULES for violation in rule(parsed))]


def r0_strings(payload: ResponsesPayload) -> Iterator[Violation]:
    """R0: one string has at most 10,485,760 characters."""
    for item in payload.items:
        strings = [(item.where, item.data.get(name)) for name in ("arguments", "input")]
        strings += [(part.where, part.data.get(name)) for part in item.parts for name in ("text", "refusal")]
        for where, text in strings:
            if isinstance(text, str) and len(text) > STRING:
                yield Violation("R0", where, f"string too long: {len(text)} characters; one has at most {STRING}")


def r0_names(payload: ResponsesPayload) -> Iterator[Violation]:
    """R0: a tool's name has 1 to 128 letters, digits, "_" and "-"."""
    for item in payload.items:
        if item.type in ("function_call", "custom_tool_call") and not NAME.fullmatch(item.data["name"]):
            yield Violation("R0", f"{item.where}.name", f"{short(item.data['name'])} should match ^[a-zA-Z0-9_-]{{1,128}}$")


def r0_image_bytes(payload: ResponsesPayload) -> Iterator[Violation]:
    """R0: an image is an http URL, or intact base64 of one of four formats, correctly labelled, of at most 20 MB."""
    for item in payload.items:
        for part in item.parts:
            if part.type == "input_image" and part.data.get("image_url") is not None:
                for problem in image_problems(text_of(part.data["image_url"])):
                    yield Violation("R0", part.where, problem)
        screenshot = item.data.get("output") if item.type == "computer_call_output" else None
        if isinstance(screenshot, Mapping) and isinstance(url := screenshot.get("image_url"), str):
            for problem in image_problems(url):
                yield Violation("R0", f"{item.where}.output", problem)


def r0_file_bytes(payload: ResponsesPayload) -> Iterator[Violation]:
    """R0: a base64 file is an intact file of its type."""
    for item in payload.items:
        for part in item.parts:
            if part.type == "input_file" and (problem := file_problem(part.data.get("file_data"))) is not None:
                yield Violation("R0", part.where, problem)


def r1_calls_have_outputs(payload: ResponsesPayload) -> Iterator[Violation]:
    """R1: every call is followed by its output, at any distance."""
    last = {
        (item.type, text_of(item.data.get(OUTPUTS[item.type]))): index for index, item in enumerate(payload.items) if item.type in OUTPUTS
    }
    for index, item in enumerate(payload.items):
        if (call_id := _call_id(item)) is not None and last.get((CALLS[item.type][1], call_id), -1) < index:
            yield Violation("R1", item.where, f"no tool output found for {item.type} {short(call_id)}")


def r1_outputs_have_calls(payload: ResponsesPayload) -> Iterator[Violation]:
    """R1: every output follows its call, and each call has one output."""
    open_calls: set[tuple[str, str]] = set()
    for item in payload.items:
        if (call_id := _call_id(item)) is not None:
            open_calls.add((CALLS[item.type][1], call_id))
        elif item.type in OUTPUTS and not _runs_at_provider(item):
            call = (item.type, text_of(item.data.get(OUTPUTS[item.type])))
            if call in open_calls:
                open_calls.remove(call)
            elif not payload.continues:
                yield Violation("R1", item.where, f"no tool call found for {item.type} {short(call[1])}")


def r1_ids(payload: ResponsesPayload) -> Iterator[Violation]:
    """R1: the ids of calls have 1 to 64 characters and are unique."""
    ids = set()
    for item in payload.items:
        if (call_id := _call_id(item)) is None:
            continue
        if not 0 < len(call_id) <= ID_LENGTH:
            yield Violation("R1", f"{item.where}.call_id", f"{len(call_id)} characters; an id has 1 to {ID_LENGTH}")
        if call_id in ids:
            yield Violation("R1", f"{item.where}.call_id", f"two calls have the id {short(call_id)}")
        ids.add(call_id)


def r2_reasoning_is_followed(payload: ResponsesPayload) -> Iterator[Violation]:
    """R2: reasoning is followed by an item of the model: a message, a call, or more reasoning that is followed."""
    is_followed = False
    for item in reversed(payload.items):
        if item.type != "reasoning":
            is_followed = item.type not in _NOT_BY_MODEL and not (item.type == "message" and item.data["role"] != "assistant")
        elif not is_followed:
            yield Violation("R2", item.where, "reasoning was provided without its required following item")


RULES: tuple[Callable[[ResponsesPayload], Iterator[Violation]], ...] = rules_in(vars())


def _runs_at_provider(item: ResponsesItem) -> bool:
    """True if the provider runs this call itself, so that no output answers it."""
    return item.type.startswith("tool_search") and (item.data.get("execution") == "server" or item.data.get("call_id") is None)


def _call_id(item: ResponsesItem) -> str | None:
    """Return the id of a call that the client answers, or None for other items."""
    if item.type not in CALLS or _runs_at_provider(item):
        return None
    return text_of(item.data.get(CALLS[item.type][0]))
