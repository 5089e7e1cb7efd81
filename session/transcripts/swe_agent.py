"""Reads SWE-agent's `.traj` files. `history` is what the model saw, with tool calls or actions in the text; `trajectory` repeats it."""

from __future__ import annotations

from .account import TranscriptAccount
from .draft import Draft, finish
from .record import Record
from .record_feed import feed_entries
from .source import Source
from .values import JsonObject, carried, list_at, object_at, objects_at, text_at
from .writer import Writer

NAME = "swe_agent"

_DEMONSTRATION = "Here is a demonstration"


def claims(value: object) -> bool:
    """Return True if the value is a trajectory."""
    if not isinstance(value, dict):
        return False
    messages = [entry for entry in objects_at(value, "history") if "role" in entry]
    if isinstance(value.get("trajectory"), list):
        return bool(messages)
    return any("message_type" in entry and "agent" in entry for entry in messages)  # a demonstration has only a history


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - SWE-agent has no sub-agents
    """Return the session in the file. The account has a record for each entry of the history, and one for the trajectory if any.

    Raises:
        TranscriptError: The file contains no messages.
    """
    document = source.document_object
    history = list_at(document, "history")
    draft = Draft(NAME, source, source.path.stem, _metadata(document))
    feed_entries(history, draft, _SweAgentEntryReader(draft).read_entry)
    if "trajectory" in document:
        draft.record(len(history) + 1).skip("the trajectory, which repeats the history")
    return finish(NAME, source, [draft])


def _metadata(document: JsonObject) -> dict[str, object]:
    info = object_at(document, "info")
    agent = object_at(object_at(document, "replay_config"), "agent")
    return {
        "environment": text_at(document, "environment"),
        "model": text_at(object_at(agent, "model"), "name"),
        "exit_status": text_at(info, "exit_status"),
        "model_stats": carried(object_at(info, "model_stats"), 2_000),
    }


class _SweAgentEntryReader:
    """Reads the entries of one history."""

    def __init__(self, draft: Draft) -> None:
        self._writer = Writer(draft)
        self._has_response = False

    def read_entry(self, _: Draft, record: Record, entry: JsonObject) -> None:
        """Read one entry."""
        response = self._writer.write(record, entry, source=self._source(entry))
        self._has_response = self._has_response or (bool(response) and entry.get("is_demo") is not True)

    def _source(self, entry: JsonObject) -> str | None:
        """Return the source of a text that the tool wrote in the user's role. Only the task, before the first response, is the user's."""
        if entry.get("role") != "user":
            return None
        if entry.get("is_demo") is True or text_at(entry, "content").lstrip().startswith(_DEMONSTRATION):
            return "demonstration"
        return "observation" if self._has_response else None
