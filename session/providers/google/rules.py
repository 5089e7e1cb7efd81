"""Validate payloads for Google's Gemini API: rules G1 to G4 of docs/provider-rules.md, and the shape (G0).

It shares no code with the converter it checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from session.errors import short
from session.providers.violations import Violation, rules_in, with_neighbours

from .schema import CheckedContent, CheckedPart, GooglePayload, read_payload


def validate_google(payload: object) -> list[Violation]:
    """Return the rules that a payload breaks; Gemini would refuse it. An empty list if it is valid.

        validate_google(await session.to_google_contents())
        validate_google({"model": "gemini-3-pro", "contents": …, "system_instruction": …})

    Args:
        payload: `(contents, system)` as the converter returns them, or a whole request. A whole request must also have contents and
            end with the user's. G4 is skipped if the request names a model before Gemini 3.

    Raises:
        FormatError: The payload is neither.
    """
    parsed = read_payload(payload)
    return [*parsed.faults, *(violation for rule in RULES for violation in rule(parsed))]


def g1_calls_follow_the_user(payload: GooglePayload) -> Iterator[Violation]:
    """G1: a function call turn comes immediately after a user turn or after a function response turn."""
    for before, turn, _ in with_neighbours(payload.turns):
        if turn.of("function_call") and (before is None or before.role != "user"):
            yield Violation("G1", turn.where, "a function call turn must come immediately after a user turn or a function response turn")


def g1_responses_follow_calls(payload: GooglePayload) -> Iterator[Violation]:
    """G1: a function response turn comes immediately after a function call turn."""
    for before, turn, _ in with_neighbours(payload.turns):
        if turn.of("function_response") and (before is None or before.role != "model" or not before.of("function_call")):
            yield Violation("G1", turn.where, "a function response turn must come immediately after a function call turn")


def g2_as_many_responses_as_calls(payload: GooglePayload) -> Iterator[Violation]:
    """G2: after a content with calls, the next content has one response for each call."""
    for _, turn, after in with_neighbours(payload.turns):
        calls, responses = turn.of("function_call"), _responses(after)
        if calls and len(calls) != len(responses):
            yield Violation("G2", turn.where, f"{len(calls)} function call parts, and {len(responses)} function response parts after them")


def g2_in_the_same_order(payload: GooglePayload) -> Iterator[Violation]:
    """G2: the responses are in the order of the calls. Each has the name of its call, and the same id if both have one."""
    for _, turn, after in with_neighbours(payload.turns):
        for call, response in zip(turn.of("function_call"), _responses(after), strict=False):
            if call.data["name"] != response.data["name"]:
                yield Violation(
                    "G2", f"{response.where}.name", f"{short(response.data['name'])} answers a call of {short(call.data['name'])}"
                )
            ids = call.data.get("id"), response.data.get("id")
            if None not in ids and ids[0] != ids[1]:
                yield Violation("G2", f"{response.where}.id", f"{short(ids[1])} answers the call {short(ids[0])}")


def g2_ids(payload: GooglePayload) -> Iterator[Violation]:
    """G2: parallel calls have different ids, so that their responses can be told apart."""
    for turn in payload.turns:
        ids = set()
        for call in turn.of("function_call"):
            if call.data.get("id") in ids:
                yield Violation("G2", f"{call.where}.id", f"{short(call.data['id'])} is the id of another call in the same content")
            ids.add(call.data.get("id") or object())


def g2_responses_come_first(payload: GooglePayload) -> Iterator[Violation]:
    """G2: responses are the first parts of their content."""
    for turn in payload.turns:
        has_other_parts = False
        for part in turn.parts:
            if part.kind == "function_response" and has_other_parts:
                yield Violation("G2", part.where, "a function response after other parts: responses come first in their content")
            has_other_parts = has_other_parts or part.kind != "function_response"


def g3_roles(payload: GooglePayload) -> Iterator[Violation]:
    """G3: roles are user and model; the system instruction is a field of its own."""
    for turn in payload.turns:
        if turn.role not in ("user", "model"):
            yield Violation("G3", f"{turn.where}.role", f"{short(turn.role)}: please use a valid role: user, model")


def g3_first_is_user(payload: GooglePayload) -> Iterator[Violation]:
    """G3: the history begins with a user turn."""
    if payload.turns and payload.turns[0].role == "model":
        yield Violation("G3", payload.turns[0].where, "the first content must be the user's")


def g3_last_is_user(payload: GooglePayload) -> Iterator[Violation]:
    """G3: a request has contents, and does not end on a model turn."""
    if payload.is_request and not payload.turns:
        yield Violation("G3", "contents", "contents are required")
    if payload.is_request and payload.turns and payload.turns[-1].role == "model":
        yield Violation("G3", payload.turns[-1].where, "multi-turn requests must end with a user turn or a function response turn")


def g4_calls_are_signed(payload: GooglePayload) -> Iterator[Violation]:
    """G4: in the current turn the first call of every content has a thought signature.

    The current turn is everything after the last user content with a part that is no function response.
    """
    if not payload.needs_signatures:
        return
    user_turns = [
        index for index, turn in enumerate(payload.turns) if turn.role == "user" and len(turn.of("function_response")) < len(turn.parts)
    ]
    for turn in payload.turns[max(user_turns, default=-1) + 1 :]:
        for call in turn.of("function_call")[:1]:
            if not call.signature:
                yield Violation("G4", call.where, f"function call {short(call.data['name'])} is missing a thought_signature")


RULES: tuple[Callable[[GooglePayload], Iterator[Violation]], ...] = rules_in(vars())


def _responses(turn: CheckedContent | None) -> list[CheckedPart]:
    return turn.of("function_response") if turn is not None else []
