"""SWE-agent's `.traj`: `history` is what the model saw, with calls or with actions in its text; `trajectory` says it again."""

from __future__ import annotations

from .account import TranscriptAccount
from .draft import Draft, Record, finish
from .feeding import feed_entries
from .source import Source
from .values import JsonObject, carried, list_at, object_at, text_at
from .writer import Writer

NAME = "swe_agent"

_DEMONSTRATION = "Here is a demonstration"


def claims(value: object) -> bool:
    """Whether the value is a trajectory."""
    if not isinstance(value, dict):
        return False
    said = [entry for entry in list_at(value, "history") if isinstance(entry, dict) and "role" in entry]
    if isinstance(value.get("trajectory"), list):
        return bool(said)
    return any("message_type" in entry and "agent" in entry for entry in said)  # a demonstration to be replayed has no more


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - it has no sub-agents
    """The one session in the file. The account has a record for each entry of the history, and one for the trajectory where there is one.

    Raises:
        TranscriptError: Nobody says anything in it.
    """
    document = source.document
    whole = document if isinstance(document, dict) else {}
    history = list_at(whole, "history")
    draft = Draft(NAME, source, source.path.stem, _metadata(whole))
    feed_entries(history, draft, _Reader(draft).take)
    if "trajectory" in whole:
        draft.record(len(history) + 1).skip("the trajectory: it says again what the history says")
    return finish(NAME, source, [draft])


def _metadata(whole: JsonObject) -> dict[str, object]:
    info = object_at(whole, "info")
    replayed = object_at(object_at(whole, "replay_config"), "agent")
    found: dict[str, object] = {
        "environment": text_at(whole, "environment"),
        "model": text_at(object_at(replayed, "model"), "name"),
        "exit_status": text_at(info, "exit_status"),
        "model_stats": carried(object_at(info, "model_stats"), 2_000),
    }
    return {name: value for name, value in found.items() if value}


class _Reader:
    """Reads the entries of one history."""

    def __init__(self, draft: Draft) -> None:
        self.writer = Writer(draft)
        self.answered = False

    def take(self, _: Draft, record: Record, entry: JsonObject) -> None:
        """Reads one entry."""
        said = self.writer.write(record, entry, source=self._source(entry))
        self.answered = self.answered or (bool(said) and entry.get("is_demo") is not True)

    def _source(self, entry: JsonObject) -> str | None:
        """What the tool's text in the user's role is: all of it but the task, which comes before the first answer."""
        if entry.get("role") != "user":
            return None
        demonstration = entry.get("is_demo") is True or text_at(entry, "content").lstrip().startswith(_DEMONSTRATION)
        return "demonstration" if demonstration else "observation" if self.answered else None
