"""What items carry of OpenAI's, under the names that the converters look for: what was read goes back to the API as it was.

The names are written down once more here because no reader needs a converter; `tests/test_transcripts_openai_words.py` holds them together.
"""

from __future__ import annotations

CUSTOM_CALL = {"openai_type": "custom_tool_call"}
"""`metadata` of a call to a tool that takes a text and not JSON."""
NAME = "openai_name"
"""In `extra` of a message: the name of who speaks."""


def phase_extra(phase: str) -> dict[str, str]:
    """The `extra` of an assistant's message which says whether it is commentary or the answer; empty where nothing is said."""
    return {"openai_phase": phase} if phase else {}


def call_metadata(kind: str, namespace: str = "") -> dict[str, object]:
    """The `metadata` of a call.

    Args:
        kind: The type of its item, as the API has it.
        namespace: Of its tool; may be empty.
    """
    told: dict[str, object] = {} if kind == "function_call" else dict(CUSTOM_CALL) if kind == "custom_tool_call" else {"type": kind}
    return {**told, **({"openai_fields": {"namespace": namespace}} if namespace else {})}
