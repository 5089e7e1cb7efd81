"""The validator for Google's Gemini API: the rules G1 to G4 of docs/provider-rules.md, a function each, and G0, the shape.

It shares no code with the converter it checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from session.errors import short
from session.providers.violations import Violation

from .shape import Payload, Piece, Turn, read_payload


def validate_google(payload: object) -> list[Violation]:
    """What Gemini would refuse in this payload; an empty list if nothing.

        validate_google(await session.to_google_contents())
        validate_google({"model": "gemini-3-pro", "contents": …, "system_instruction": …})

    Args:
        payload: `(contents, system)` as the converter returns them, or a whole request. Of a whole request is asked in addition
            that there are contents and that the last is the user's; G4 only where the model named, if any, is Gemini 3 or later.

    Raises:
        FormatError: It is neither.
    """
    laid_out = read_payload(payload)
    return [*laid_out.faults, *(violation for rule in RULES for violation in rule(laid_out))]


def g1_calls_follow_the_user(payload: Payload) -> Iterator[Violation]:
    """G1: a function call turn comes immediately after a user turn or after a function response turn."""
    for before, turn, _ in payload.neighbours():
        if turn.of("function_call") and (before is None or before.role != "user"):
            yield Violation("G1", turn.where, "a function call turn must come immediately after a user turn or a function response turn")


def g1_responses_follow_calls(payload: Payload) -> Iterator[Violation]:
    """G1: a function response turn comes immediately after a function call turn."""
    for before, turn, _ in payload.neighbours():
        if turn.of("function_response") and (before is None or before.role != "model" or not before.of("function_call")):
            yield Violation("G1", turn.where, "a function response turn must come immediately after a function call turn")


def g2_as_many_responses_as_calls(payload: Payload) -> Iterator[Violation]:
    """G2: the content after one with calls has as many responses."""
    for _, turn, after in payload.neighbours():
        calls, responses = turn.of("function_call"), _responses(after)
        if calls and len(calls) != len(responses):
            yield Violation("G2", turn.where, f"{len(calls)} function call parts, and {len(responses)} function response parts after them")


def g2_in_the_same_order(payload: Payload) -> Iterator[Violation]:
    """G2: the responses are in the order of the calls: each has the name of its call, and its id where both have one."""
    for _, turn, after in payload.neighbours():
        for call, response in zip(turn.of("function_call"), _responses(after), strict=False):
            if call.data["name"] != response.data["name"]:
                yield Violation(
                    "G2", f"{response.where}.name", f"{short(response.data['name'])} answers a call of {short(call.data['name'])}"
                )
            ids = call.data.get("id"), response.data.get("id")
            if None not in ids and ids[0] != ids[1]:
                yield Violation("G2", f"{response.where}.id", f"{short(ids[1])} answers the call {short(ids[0])}")


def g2_ids(payload: Payload) -> Iterator[Violation]:
    """G2: the ids of parallel calls are different: by them responses are told apart."""
    for turn in payload.turns:
        seen = set()
        for call in turn.of("function_call"):
            if call.data.get("id") in seen:
                yield Violation("G2", f"{call.where}.id", f"{short(call.data['id'])} is the id of another call beside it")
            seen.add(call.data.get("id") or object())


def g2_responses_come_first(payload: Payload) -> Iterator[Violation]:
    """G2: in a content that has responses, they stand before all else."""
    for turn in payload.turns:
        other = False
        for part in turn.parts:
            if part.kind == "function_response" and other:
                yield Violation("G2", part.where, "a function response behind other parts: responses come first in their content")
            other = other or part.kind != "function_response"


def g3_roles(payload: Payload) -> Iterator[Violation]:
    """G3: roles are user and model; the system instruction is a field of its own."""
    for turn in payload.turns:
        if turn.role not in ("user", "model"):
            yield Violation("G3", f"{turn.where}.role", f"{short(turn.role)}: please use a valid role: user, model")


def g3_first_is_user(payload: Payload) -> Iterator[Violation]:
    """G3: the history begins with a user turn."""
    if payload.turns and payload.turns[0].role == "model":
        yield Violation("G3", payload.turns[0].where, "the first content must be the user's")


def g3_last_is_user(payload: Payload) -> Iterator[Violation]:
    """G3: a request has contents, and does not end on a model turn."""
    if payload.whole and not payload.turns:
        yield Violation("G3", "contents", "contents are required")
    if payload.whole and payload.turns and payload.turns[-1].role == "model":
        yield Violation("G3", payload.turns[-1].where, "multi-turn requests must end with a user turn or a function response turn")


def g4_calls_are_signed(payload: Payload) -> Iterator[Violation]:
    """G4: in the current turn the first call of every content has a thought signature.

    The current turn is all since the user last said something that is no function response.
    """
    if not payload.signed:
        return
    spoke = [
        place for place, turn in enumerate(payload.turns) if turn.role == "user" and len(turn.of("function_response")) < len(turn.parts)
    ]
    for turn in payload.turns[max(spoke, default=-1) + 1 :]:
        for call in turn.of("function_call")[:1]:
            if not call.signature:
                yield Violation("G4", call.where, f"function call {short(call.data['name'])} is missing a thought_signature")


RULES: tuple[Callable[[Payload], Iterator[Violation]], ...] = (
    g1_calls_follow_the_user,
    g1_responses_follow_calls,
    g2_as_many_responses_as_calls,
    g2_in_the_same_order,
    g2_ids,
    g2_responses_come_first,
    g3_roles,
    g3_first_is_user,
    g3_last_is_user,
    g4_calls_are_signed,
)


def _responses(turn: Turn | None) -> list[Piece]:
    return turn.of("function_response") if turn is not None else []
