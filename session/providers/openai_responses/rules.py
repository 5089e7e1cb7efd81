"""The validator for the Responses API: the rules R1 and R2 of docs/provider-rules.md, a function each or several, and R0, the shape.

Not checked, because a payload does not show it: whether an item with an id came with reasoning that is missing (R2, the other way
round). It shares no code with the converter it checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from session.errors import short
from session.providers.openai_chat.rules import file_problem, image_problems
from session.providers.violations import Violation, text_of

from .shape import Item, Payload, read_payload

STRING = 10_485_760
"""R0: characters of one string."""
ID_LENGTH = 64
"""R1: characters of a call's id."""
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
"""R1: by type of call, the field of its id and the type of its output."""
OUTPUTS = {output: "id" if output == "local_shell_call_output" else "call_id" for _, output in CALLS.values()}
_NOT_MADE = frozenset({*OUTPUTS, "additional_tools", "compaction", "configuration_update", "item_reference", "mcp_approval_response"})
"""R2: items that the model did not make in the answer that its reasoning is part of."""


def validate_openai_responses(payload: object) -> list[Violation]:
    """What the Responses API would refuse in this payload; an empty list if nothing.

        validate_openai_responses(session.to_openai_responses())
        validate_openai_responses({"model": …, "input": …})

    Args:
        payload: The items as the converter returns them, or a whole request. Of a whole request is asked in addition that
            there are items; one that goes on with a stored response may answer calls that are not in it.

    Raises:
        FormatError: It is neither.
    """
    laid_out = read_payload(payload)
    return [*laid_out.faults, *(violation for rule in RULES for violation in rule(laid_out))]


def r0_strings(payload: Payload) -> Iterator[Violation]:
    """R0: one string has at most 10,485,760 characters."""
    for item in payload.items:
        strings = [(item.where, item.data.get(name)) for name in ("arguments", "input")]
        strings += [(part.where, part.data.get(name)) for part in item.parts for name in ("text", "refusal")]
        for where, text in strings:
            if isinstance(text, str) and len(text) > STRING:
                yield Violation("R0", where, f"string too long: {len(text)} characters; one has at most {STRING}")


def r0_names(payload: Payload) -> Iterator[Violation]:
    """R0: the name of a tool has 1 to 128 letters, digits, "_" and "-"."""
    for item in payload.items:
        if item.type in ("function_call", "custom_tool_call") and not NAME.fullmatch(item.data["name"]):
            yield Violation("R0", f"{item.where}.name", f"{short(item.data['name'])} should match ^[a-zA-Z0-9_-]{{1,128}}$")


def r0_image_bytes(payload: Payload) -> Iterator[Violation]:
    """R0: an image is fetched from http, or comes as base64 of one of four formats, whole, labelled as what it is, of at most 20 MB."""
    for item in payload.items:
        for part in item.parts:
            if part.type == "input_image" and part.data.get("image_url") is not None:
                for problem in image_problems(text_of(part.data["image_url"])):
                    yield Violation("R0", part.where, problem)
        shown = item.data.get("output") if item.type == "computer_call_output" else None
        if isinstance(shown, Mapping) and isinstance(url := shown.get("image_url"), str):
            for problem in image_problems(url):
                yield Violation("R0", f"{item.where}.output", problem)


def r0_file_bytes(payload: Payload) -> Iterator[Violation]:
    """R0: a file that comes as base64 is a whole one of its type."""
    for item in payload.items:
        for part in item.parts:
            if part.type == "input_file" and (problem := file_problem(part.data.get("file_data"))) is not None:
                yield Violation("R0", part.where, problem)


def r1_calls_have_outputs(payload: Payload) -> Iterator[Violation]:
    """R1: every call has its output somewhere behind it."""
    last = {
        (item.type, text_of(item.data.get(OUTPUTS[item.type]))): place for place, item in enumerate(payload.items) if item.type in OUTPUTS
    }
    for place, item in enumerate(payload.items):
        if (call_id := _call_id(item)) is not None and last.get((CALLS[item.type][1], call_id), -1) < place:
            yield Violation("R1", item.where, f"no tool output found for {item.type} {short(call_id)}")


def r1_outputs_have_calls(payload: Payload) -> Iterator[Violation]:
    """R1: every output has its call before it, and each call one output."""
    waiting: set[tuple[str, str]] = set()
    for item in payload.items:
        if (call_id := _call_id(item)) is not None:
            waiting.add((CALLS[item.type][1], call_id))
        elif item.type in OUTPUTS and not _by_itself(item):
            answered = (item.type, text_of(item.data.get(OUTPUTS[item.type])))
            if answered in waiting:
                waiting.remove(answered)
            elif not payload.continues:
                yield Violation("R1", item.where, f"no tool call found for {item.type} {short(answered[1])}")


def r1_ids(payload: Payload) -> Iterator[Violation]:
    """R1: the ids of calls are not empty, not longer than 64 characters, and each its own."""
    seen = set()
    for item in payload.items:
        if (call_id := _call_id(item)) is None:
            continue
        if not 0 < len(call_id) <= ID_LENGTH:
            yield Violation("R1", f"{item.where}.call_id", f"{len(call_id)} characters; an id has 1 to {ID_LENGTH}")
        if call_id in seen:
            yield Violation("R1", f"{item.where}.call_id", f"two calls have the id {short(call_id)}")
        seen.add(call_id)


def r2_reasoning_is_followed(payload: Payload) -> Iterator[Violation]:
    """R2: reasoning is followed by an item that the model made after it: a message, a call, more reasoning that is followed."""
    followed = False
    for item in reversed(payload.items):
        if item.type != "reasoning":
            followed = item.type not in _NOT_MADE and not (item.type == "message" and item.data["role"] != "assistant")
        elif not followed:
            yield Violation("R2", item.where, "reasoning was provided without its required following item")


RULES: tuple[Callable[[Payload], Iterator[Violation]], ...] = (
    r0_strings,
    r0_names,
    r0_image_bytes,
    r0_file_bytes,
    r1_calls_have_outputs,
    r1_outputs_have_calls,
    r1_ids,
    r2_reasoning_is_followed,
)


def _by_itself(item: Item) -> bool:
    """Whether the provider carried this out itself: then nobody answers it."""
    return item.type.startswith("tool_search") and (item.data.get("execution") == "server" or item.data.get("call_id") is None)


def _call_id(item: Item) -> str | None:
    """The id of a call that a client answers."""
    if item.type not in CALLS or _by_itself(item):
        return None
    return text_of(item.data.get(CALLS[item.type][0]))
