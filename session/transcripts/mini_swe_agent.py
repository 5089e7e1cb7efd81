"""Reads mini-swe-agent's `.traj.json` files, which hold the messages as the model saw them.

Older versions have actions in the text and their results in the user's role; newer ones have tool calls.
"""

from __future__ import annotations

import re

from .account import TranscriptAccount
from .draft import Draft, finish
from .record import Record
from .record_feed import feed_entries
from .source import Source
from .usage import usage_of
from .values import JsonObject, carried, list_at, moment, object_at, objects_at, text_at
from .writer import Writer, is_message

NAME = "mini_swe_agent"

_OBSERVATION = re.compile(r"\s*(?:<returncode>|<output>|\{\s*\"returncode\")")
_NOTICES = ("Please always provide EXACTLY ONE action", "The last command", "Tool call error", "No tool calls found")
"""Openings of error messages that the tool writes to the model."""


def claims(value: object) -> bool:
    """Return True if the value names itself a trajectory, or is a list of messages with this tool's observations."""
    if isinstance(value, dict):
        info = object_at(value, "info")
        return isinstance(value.get("messages"), list) and (
            text_at(value, "trajectory_format").startswith("mini-swe-agent")
            or "mini_version" in info
            or "mini-swe-agent" in text_at(info, "version")
        )
    if not isinstance(value, list) or not value or not is_message(value[0]):
        return False
    return any(
        isinstance(message, dict) and message.get("role") == "user" and _OBSERVATION.match(text_at(message, "content")) for message in value
    )


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - mini-swe-agent has no sub-agents
    """Return the session in the file.

    Raises:
        TranscriptError: The file contains no messages.
    """
    document = source.document_object
    messages = source.document if isinstance(source.document, list) else list_at(document, "messages")
    instance = text_at(document, "instance_id")
    stem = source.path.name.removesuffix(".json").removesuffix(".traj")
    draft = Draft(NAME, source, instance or stem, _metadata(document, instance))
    submission = text_at(object_at(document, "info"), "submission")
    feed_entries(messages, draft, _MiniSweMessageReader(draft, len(messages), submission).read_message)
    return finish(NAME, source, [draft])


def _metadata(document: JsonObject, instance: str) -> dict[str, object]:
    info = object_at(document, "info")
    config = object_at(info, "config")
    return {
        "session_id": instance,
        "model": text_at(object_at(config, "model"), "model_name"),
        "version": text_at(info, "mini_version"),
        "exit_status": text_at(info, "exit_status"),
        "model_stats": carried(object_at(info, "model_stats"), 2_000),
    }


class _MiniSweMessageReader:
    """Reads the messages of one trajectory."""

    def __init__(self, draft: Draft, message_count: int, submission: str) -> None:
        self._draft = draft
        self._message_count = message_count
        self._submission = submission
        self._writer = Writer(draft)
        self._has_response = False

    def read_message(self, _: Draft, record: Record, message: JsonObject) -> None:
        """Read one message."""
        if message.get("role") == "exit" or (record.number == self._message_count and self._has_response and self._is_submission(message)):
            record.skip("the result of the run, which the model never saw")
            return
        extra = object_at(message, "extra")
        api_response = object_at(extra, "response")
        self._writer.clock.at(moment(extra.get("timestamp")), moment(api_response.get("created")))
        source = self._source(message) if self._has_response and message.get("role") == "user" else None
        response = self._writer.write(record, message, source=source)
        if not response:
            return
        self._has_response = True
        self._draft.report(response, usage_of(api_response.get("usage")), text_at(api_response, "provider"))
        if model := text_at(api_response, "model"):
            self._draft.metadata.setdefault("model", model)
        choice = next(iter(objects_at(api_response, "choices")), {})
        api_message = object_at(choice, "message")
        if text_at(api_message, "reasoning", "reasoning_content") and not text_at(message, "reasoning", "reasoning_content"):
            record.skip("left out the reasoning, which is not sent again")

    def _is_submission(self, message: JsonObject) -> bool:
        """Return True if the message, the last one, is the submitted result. It is logged in the user's role but never sent."""
        content = message.get("content")
        return message.get("role") == "user" and isinstance(content, str) and content.strip() == self._submission.strip()

    def _source(self, message: JsonObject) -> str | None:
        """Return the source of a text that the tool wrote in the user's role, or None for the user's own."""
        text = text_at(message, "content") or text_at(next(iter(objects_at(message, "content")), {}), "text")
        if _OBSERVATION.match(text):
            return "observation"
        return "notice" if text.lstrip().startswith(_NOTICES) else None
