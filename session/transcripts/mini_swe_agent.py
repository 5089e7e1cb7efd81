"""mini-swe-agent's `.traj.json`: the messages as the model saw them. Actions are in the text, what came of them is in the user's role;
newer ones have calls.
"""

from __future__ import annotations

import re

from .account import TranscriptAccount
from .draft import Draft, Record, finish
from .feeding import feed_entries
from .source import Source
from .usages import usage_of
from .values import JsonObject, carried, list_at, moment, object_at, text_at
from .writer import Writer, is_message

NAME = "mini_swe_agent"

_OBSERVED = re.compile(r"\s*(?:<returncode>|<output>|\{\s*\"returncode\")")
_NOTICES = ("Please always provide EXACTLY ONE action", "The last command", "Tool call error", "No tool calls found")
"""How the tool's own complaints begin."""


def claims(value: object) -> bool:
    """Whether the value is a trajectory: it says so, or it is a list of messages with observations as this tool writes them."""
    if isinstance(value, dict):
        info = object_at(value, "info")
        return isinstance(value.get("messages"), list) and (
            text_at(value, "trajectory_format").startswith("mini-swe-agent")
            or "mini_version" in info
            or "mini-swe-agent" in text_at(info, "version")
        )
    if not isinstance(value, list) or not value or not is_message(value[0]):
        return False
    return any(isinstance(one, dict) and one.get("role") == "user" and _OBSERVED.match(text_at(one, "content")) for one in value)


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - it has no sub-agents
    """The one session in the file.

    Raises:
        TranscriptError: Nobody says anything in it.
    """
    document = source.document
    whole = document if isinstance(document, dict) else {}
    messages = document if isinstance(document, list) else list_at(whole, "messages")
    instance = text_at(whole, "instance_id")
    draft = Draft(NAME, source, instance or source.path.name.removesuffix(".json").removesuffix(".traj"), _metadata(whole, instance))
    submission = text_at(object_at(whole, "info"), "submission")
    feed_entries(messages, draft, _Reader(draft, len(messages), submission).take)
    return finish(NAME, source, [draft])


def _metadata(whole: JsonObject, instance: str) -> dict[str, object]:
    info = object_at(whole, "info")
    config = object_at(info, "config")
    found: dict[str, object] = {
        "session_id": instance,
        "model": text_at(object_at(config, "model"), "model_name"),
        "version": text_at(info, "mini_version"),
        "exit_status": text_at(info, "exit_status"),
        "model_stats": carried(object_at(info, "model_stats"), 2_000),
    }
    return {name: value for name, value in found.items() if value}


class _Reader:
    """Reads the messages of one trajectory."""

    def __init__(self, draft: Draft, count: int, submission: str) -> None:
        self.draft = draft
        self._end = count
        self._submission = submission
        self.writer = Writer(draft)
        self.answered = False

    def take(self, _: Draft, record: Record, message: JsonObject) -> None:
        """Reads one message."""
        if message.get("role") == "exit" or (record.place == self._end and self.answered and self._is_end(message)):
            record.skip("how the run ended, which the model was not told")
            return
        extra = object_at(message, "extra")
        response = object_at(extra, "response")
        self.writer.clock.at(moment(extra.get("timestamp")), moment(response.get("created")))
        source = self._source(message) if self.answered and message.get("role") == "user" else None
        said = self.writer.write(record, message, source=source)
        if not said:
            return
        self.answered = True
        self.draft.report(said, usage_of(response.get("usage")))
        if text_at(response, "model"):
            self.draft.metadata.setdefault("model", text_at(response, "model"))
        choice = next((one for one in list_at(response, "choices") if isinstance(one, dict)), {})
        thought = object_at(choice, "message")
        if text_at(thought, "reasoning", "reasoning_content") and not text_at(message, "reasoning", "reasoning_content"):
            record.reasons.append("left out the reasoning, which is not sent again")

    def _is_end(self, message: JsonObject) -> bool:
        """Whether the last message is what was submitted: it is written down in the user's role, and nobody is asked any more."""
        content = message.get("content")
        return message.get("role") == "user" and isinstance(content, str) and content.strip() == self._submission.strip()

    def _source(self, message: JsonObject) -> str | None:
        text = text_at(message, "content")
        if not text:
            first = next((block for block in list_at(message, "content") if isinstance(block, dict)), {})
            text = text_at(first, "text")
        if _OBSERVED.match(text):
            return "observation"
        return "notice" if text.lstrip().startswith(_NOTICES) else None
