"""Validate payloads for Anthropic's Messages API: rules A1 to A9 of docs/provider-rules.md, and the shape (A0).

Not checked, because a payload does not show it: A5 (the conversation that a signature is bound to), the byte identity of A4, and that
compaction blocks were kept (A9). It shares no code with the converter it checks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from session.errors import short
from session.images import image_size
from session.providers.encoded_media import decoded, document_fault, image_faults
from session.providers.violations import Violation, rules_in, with_neighbours

from .schema import AnthropicPayload, CheckedMessage, read_payload

MARKS = 4
"""A7: maximum blocks with cache_control."""
IMAGES = 100
"""A8: maximum images in a request; 600 on the largest context windows."""
MANY = 20
"""A8: with more images and documents than this, the smaller limit of sides applies."""
SIDE, SIDE_OF_MANY = 8_000, 2_000
"""A8: maximum side of an image, in pixels."""
IMAGE_BYTES = 10 * 1024 * 1024
"""A8: maximum bytes of one image's base64."""
REQUEST_BYTES = 32 * 1024 * 1024
"""A8: maximum bytes of the request as JSON."""

TOOL_USE_ID = re.compile(r"[a-zA-Z0-9_-]+")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_THINKING = ("thinking", "redacted_thinking")


def validate_anthropic(payload: object) -> list[Violation]:
    """Return the rules that a payload breaks; Anthropic would refuse it. An empty list if it is valid.

        validate_anthropic(session.to_anthropic_messages())
        validate_anthropic({"model": …, "max_tokens": …, "messages": …, "system": …, "thinking": …})

    Args:
        payload: `(messages, system)` as the converter returns them, or a whole request. A whole request must also have messages, end
            with the user's, and satisfy its `thinking` setting.

    Raises:
        FormatError: The payload is neither.
    """
    parsed = read_payload(payload)
    return [*parsed.faults, *(violation for rule in RULES for violation in rule(parsed))]


def a1_not_empty(payload: AnthropicPayload) -> Iterator[Violation]:
    """A1: a request has at least one message."""
    if payload.is_request and not payload.turns:
        yield Violation("A1", "messages", "at least one message is required")


def a1_first_is_user(payload: AnthropicPayload) -> Iterator[Violation]:
    """A1: the first message is the user's."""
    if payload.turns and payload.turns[0].role != "user":
        yield Violation("A1", payload.turns[0].where, "the first message must be the user's")


def a1_roles_alternate(payload: AnthropicPayload) -> Iterator[Violation]:
    """A1: user and assistant messages alternate."""
    for before, turn, _ in with_neighbours(payload.turns):
        if before is not None and before.role == turn.role:
            yield Violation("A1", turn.where, f"two {turn.role} messages in a row: roles must alternate")


def a1_last_is_user(payload: AnthropicPayload) -> Iterator[Violation]:
    """A1: the last message is the user's, or ends in a compaction (A9); newer models take no prefill."""
    if payload.is_request and payload.turns and payload.turns[-1].role != "user" and not _ends_in_compaction(payload.turns[-1]):
        yield Violation("A1", payload.turns[-1].where, "the last message must be the user's")


def a2_calls_are_answered(payload: AnthropicPayload) -> Iterator[Violation]:
    """A2: every tool_use has its tool_result in the next message."""
    for _, turn, after in with_neighbours(payload.turns):
        answered_ids = set(_ids(after, "tool_result", "tool_use_id") if after is not None and after.role == "user" else [])
        for block in turn.blocks:
            if block.type == "tool_use" and block.data["id"] not in answered_ids:
                yield Violation("A2", block.where, f"tool_use {short(block.data['id'])} without a tool_result in the next message")


def a2_server_calls_are_answered(payload: AnthropicPayload) -> Iterator[Violation]:
    """A2: every server_tool_use has its result, in its own message or the next one."""
    for _, turn, after in with_neighbours(payload.turns):
        blocks = (*turn.blocks, *(after.blocks if after is not None else ()))
        answered_ids = {block.data.get("tool_use_id") for block in blocks if block.type.endswith("_tool_result")}
        for block in turn.blocks:
            if block.type == "server_tool_use" and block.data.get("id") not in answered_ids:
                yield Violation("A2", block.where, f"server_tool_use {short(block.data.get('id'))} without a result")


def a2_ids(payload: AnthropicPayload) -> Iterator[Violation]:
    """A2: the ids of tool_use blocks are unique and consist of letters, digits, "_" and "-"."""
    ids = set()
    for turn in payload.turns:
        for block in turn.blocks:
            if block.type != "tool_use":
                continue
            tool_use_id = block.data["id"]
            if tool_use_id in ids:
                yield Violation("A2", f"{block.where}.id", f"tool_use ids must be unique: {short(tool_use_id)}")
            if not TOOL_USE_ID.fullmatch(tool_use_id):
                yield Violation("A2", f"{block.where}.id", f"{short(tool_use_id)} should match ^[a-zA-Z0-9_-]+$")
            ids.add(tool_use_id)


def a3_results_have_calls(payload: AnthropicPayload) -> Iterator[Violation]:
    """A3: every tool_result answers a tool_use of the message before it, and each is answered once."""
    for before, turn, _ in with_neighbours(payload.turns):
        open_calls = Counter(_ids(before, "tool_use", "id") if before is not None and before.role == "assistant" else [])
        for block in turn.blocks:
            if block.type == "tool_result":
                tool_use_id = block.data["tool_use_id"]
                if open_calls[tool_use_id] <= 0:
                    yield Violation(
                        "A3", block.where, f"unexpected tool_use_id {short(tool_use_id)}: no such tool_use in the message before"
                    )
                open_calls[tool_use_id] -= 1


def a3_results_come_first(payload: AnthropicPayload) -> Iterator[Violation]:
    """A3: tool_result blocks are the first blocks of their message."""
    for turn in payload.turns:
        has_other_blocks = False
        for block in turn.blocks:
            if block.type != "tool_result":
                has_other_blocks = True
            elif has_other_blocks:
                yield Violation("A3", block.where, "a tool_result after other content: results come first in their message")


def a3_error_results(payload: AnthropicPayload) -> Iterator[Violation]:
    """A3: the content of an error result is not empty and holds only texts."""
    for block in payload.every_block():
        if block.type == "tool_result" and block.data.get("is_error"):
            if not any(inner.data.get("text") or inner.type != "text" for inner in block.inner):
                yield Violation("A3", block.where, "content cannot be empty if is_error is true")
            if any(inner.type != "text" for inner in block.inner):
                yield Violation("A3", block.where, "all content must be text if is_error is true")


def a4_thinking_is_signed(payload: AnthropicPayload) -> Iterator[Violation]:
    """A4: a thinking block has its signature, a redacted one its data.

    A signed block without text is valid: models return it if they are asked to omit their thinking.
    """
    for block in payload.every_block():
        if block.type in _THINKING:
            name = "signature" if block.type == "thinking" else "data"
            if not (isinstance(block.data[name], str) and block.data[name]):
                yield Violation("A4", f"{block.where}.{name}", "missing or empty: send the block unchanged, or leave it out")


def a4_thinking_is_not_last(payload: AnthropicPayload) -> Iterator[Violation]:
    """A4: the final block of an assistant message is not thinking."""
    for turn in payload.turns:
        if turn.blocks and turn.blocks[-1].type in _THINKING:
            yield Violation("A4", turn.blocks[-1].where, "the final block of an assistant message cannot be thinking")


def a4_thinking_comes_first(payload: AnthropicPayload) -> Iterator[Violation]:
    """A4: with thinking enabled by budget, an assistant message that holds thinking begins with it."""
    for turn in payload.turns if payload.thinking == "enabled" else ():
        types = [block.type for block in turn.blocks]
        if any(kind in _THINKING for kind in types) and types[0] not in _THINKING:
            yield Violation("A4", turn.blocks[0].where, f"a message that holds thinking begins with it, but found {types[0]}")


def a4_turn_starts_with_thinking(payload: AnthropicPayload) -> Iterator[Violation]:
    """A4: with thinking enabled by budget, an unfinished turn of the assistant that calls tools starts with thinking.

    The turn is everything after the last user message with a block that is no tool result. Adaptive thinking has no such rule.
    """
    if payload.thinking != "enabled":
        return
    user_turns = [
        index
        for index, turn in enumerate(payload.turns)
        if any(block.type != "tool_result" for block in turn.blocks) and turn.role == "user"
    ]
    unfinished = [turn for turn in payload.turns[max(user_turns, default=-1) + 1 :] if turn.role == "assistant"]
    blocks = [block for turn in unfinished for block in turn.blocks]
    if any(block.type == "tool_use" for block in blocks) and blocks[0].type not in _THINKING:
        yield Violation("A4", blocks[0].where, f"expected thinking or redacted_thinking, but found {blocks[0].type}")


def a6_texts_are_not_blank(payload: AnthropicPayload) -> Iterator[Violation]:
    """A6: a text block holds more than whitespace, in messages, tool results and the system prompt."""
    for block in payload.every_block():
        if block.type == "text" and not block.data["text"].strip():
            yield Violation("A6", block.where, "text content blocks must contain non-whitespace text")


def a6_messages_are_not_empty(payload: AnthropicPayload) -> Iterator[Violation]:
    """A6: every message has content."""
    for turn in payload.turns:
        if not turn.blocks:
            yield Violation("A6", turn.where, "messages must have non-empty content")


def a6_no_trailing_whitespace(payload: AnthropicPayload) -> Iterator[Violation]:
    """A6: a final assistant message does not end in whitespace."""
    if payload.turns and payload.turns[-1].role == "assistant" and payload.turns[-1].blocks:
        last = payload.turns[-1].blocks[-1]
        if last.type == "text" and last.data["text"] != last.data["text"].rstrip():
            yield Violation("A6", last.where, "final assistant content cannot end with trailing whitespace")


def a7_cache_marks(payload: AnthropicPayload) -> Iterator[Violation]:
    """A7: at most four cache marks, none on thinking or blank text; marks of an hour precede marks of five minutes."""
    has_short_mark = False
    marked = [block for block in payload.every_block() if block.data.get("cache_control") is not None]
    if len(marked) > MARKS:
        yield Violation("A7", marked[MARKS].where, f"a maximum of {MARKS} blocks with cache_control may be provided, found {len(marked)}")
    for block in marked:
        mark = block.data["cache_control"]
        if not isinstance(mark, dict) or mark.get("type") != "ephemeral" or mark.get("ttl", "5m") not in ("5m", "1h"):
            yield Violation("A7", f"{block.where}.cache_control", f"{short(mark)} is no cache mark")
            continue
        if block.type in _THINKING or (block.type == "text" and not block.data["text"].strip()):
            yield Violation("A7", block.where, f"cache_control cannot be set on {'blank text' if block.type == 'text' else block.type}")
        if mark.get("ttl") == "1h" and has_short_mark:
            yield Violation("A7", block.where, "a cache mark of 1h after one of 5m")
        has_short_mark = has_short_mark or mark.get("ttl", "5m") == "5m"


def a8_how_many_images(payload: AnthropicPayload) -> Iterator[Violation]:
    """A8: at most 100 images in a request."""
    images = [block for block in payload.every_block() if block.type == "image"]
    if len(images) > IMAGES:
        yield Violation("A8", images[IMAGES].where, f"{len(images)} images; a request holds at most {IMAGES}")


def a8_image_bytes(payload: AnthropicPayload) -> Iterator[Violation]:
    """A8: an inline image is intact base64 of one of four formats, correctly labelled, and within its limits."""
    blocks = list(payload.every_block())
    side = SIDE_OF_MANY if sum(block.type in ("image", "document") for block in blocks) > MANY else SIDE
    for block in blocks:
        source = block.data["source"] if block.type == "image" else {}
        if source.get("type") == "base64":
            for problem in _image_problems(source["media_type"], source["data"], side):
                yield Violation("A8", block.where, problem)


def a8_document_bytes(payload: AnthropicPayload) -> Iterator[Violation]:
    """A8: an inline document is the base64 of an intact PDF."""
    for block in payload.every_block():
        source = block.data["source"] if block.type == "document" else {}
        if source.get("type") == "base64":
            fault = document_fault("application/pdf", source["data"])
            if fault is not None:
                yield Violation("A8", block.where, fault)


def a8_request_size(payload: AnthropicPayload) -> Iterator[Violation]:
    """A8: a request has at most 32 MB."""
    if payload.size > REQUEST_BYTES:
        yield Violation("A8", "payload", f"{payload.size} bytes; a request has at most {REQUEST_BYTES}")


def a9_tool_use(payload: AnthropicPayload) -> Iterator[Violation]:
    """A9: a tool's input is a JSON object, and its name is valid."""
    for turn in payload.turns:
        for block in turn.blocks:
            if block.type == "tool_use":
                if not isinstance(block.data["input"], dict):
                    yield Violation("A9", f"{block.where}.input", "input should be a valid dictionary")
                if not TOOL_NAME.fullmatch(block.data["name"]):
                    yield Violation("A9", f"{block.where}.name", f"{short(block.data['name'])} should match ^[a-zA-Z0-9_-]{{1,128}}$")


RULES: tuple[Callable[[AnthropicPayload], Iterator[Violation]], ...] = rules_in(vars())


def _ends_in_compaction(turn: CheckedMessage) -> bool:
    return bool(turn.blocks) and turn.blocks[-1].type == "compaction"


def _ids(turn: CheckedMessage, kind: str, name: str) -> list[str]:
    return [block.data[name] for block in turn.blocks if block.type == kind]


def _image_problems(media_type: str, data: str, side: int) -> Iterator[str]:
    if len(data) > IMAGE_BYTES:
        yield f"{len(data)} bytes of base64; an image has at most {IMAGE_BYTES}"
    if (size := image_size(decoded(data) or b"")) is not None and max(size) > side:
        yield f"{size[0]}x{size[1]} pixels; a side has at most {side}"
    yield from image_faults(media_type, data)
