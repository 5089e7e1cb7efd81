"""OpenAI's own fields that readers keep in `extra` and `metadata`, so that a log goes back to OpenAI unchanged."""

from __future__ import annotations

from session.providers.openai_responses.item_kinds import FIELDS, PHASE, TYPE

CUSTOM_CALL = {TYPE: "custom_tool_call"}
"""The `metadata` of a call to a tool that takes a text instead of JSON."""


def phase_extra(phase: str) -> dict[str, str]:
    """Return the `extra` of an assistant message in this phase ("commentary" or "final_answer"); empty without a phase."""
    return {PHASE: phase} if phase else {}


def call_metadata(kind: str, namespace: str = "") -> dict[str, object]:
    """Return the `metadata` of a call.

    Args:
        kind: The type of its item in the Responses API.
        namespace: The namespace of its tool; may be empty.
    """
    metadata: dict[str, object] = {} if kind == "function_call" else dict(CUSTOM_CALL) if kind == "custom_tool_call" else {"type": kind}
    return {**metadata, **({FIELDS: {"namespace": namespace}} if namespace else {})}
