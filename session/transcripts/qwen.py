"""Reads Qwen Code's `chats/*.jsonl`: records with `uuid` and `parentUuid`, each with a message in Google's form.

An answer's parts can stand on several records with one `uuid`. `system` records: `rewind` goes back to its parent, and
`chat_compression` replaces the history; the others are for the screen, or unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from session.items import Compaction

from .account import TranscriptAccount
from .compactions import KeepRule
from .draft import Draft, finish
from .places import Place
from .record import Record
from .record_feed import feed_lines
from .requests import Request, amounts_of
from .source import Source
from .usage import Counts, split_total
from .values import JsonObject, count_at, id_at, list_at, moment, object_at, objects_at, seconds, stated_at, text_at
from .writer import Writer, is_message

NAME = "qwen"
PLACES = (Place("~/.qwen", "projects/*/chats/*.jsonl"),)
TYPES = ("user", "assistant", "tool_result", "system")
SCREEN = frozenset(
    {
        "at_command",
        "attribution_snapshot",
        "branch_checkpoint",
        "custom_title",
        "file_history_snapshot",
        "parent_session",
        "session_approval_mode",
        "session_artifact_event",
        "session_artifact_snapshot",
        "session_model",
        "session_source",
        "slash_command",
        "turn_result",
        "ui_telemetry",
        "user_text_elements",
    }
)
"""Subtypes of `system` that the model never sees."""


def claims(value: object) -> bool:
    """Return True if the value is a record of Qwen Code: Claude Code's have the same fields, but no `parts` and no `systemPayload`."""
    if not isinstance(value, dict) or "parentUuid" not in value or "uuid" not in value or text_at(value, "type") not in TYPES:
        return False
    return isinstance(object_at(value, "message").get("parts"), list) or (value["type"] == "system" and "systemPayload" in value)


def usage_of(report: JsonObject) -> Counts | None:
    """Return the tokens of a `usageMetadata`, or None if it has none. A total without its parts counts as input.

    Of OpenAI's providers, `candidatesTokenCount` includes the thoughts, of Google's it does not: the total tells.
    """
    prompt, visible, thoughts = (count_at(report, f"{name}TokenCount") for name in ("prompt", "candidates", "thoughts"))
    total = count_at(report, "totalTokenCount")
    if not (prompt or visible):
        return Counts(total) if total else None
    output = visible if 0 < total < prompt + visible + thoughts else visible + thoughts
    return split_total(prompt, count_at(report, "cachedContentTokenCount"), 0, output)


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents have files of their own
    """Return the session in the file.

    Raises:
        TranscriptError: The file contains no messages.
    """
    draft = Draft(NAME, source, source.path.stem)
    writer = Writer(draft)
    ends = {"": 0}

    def read_record(_: Draft, record: Record, value: JsonObject) -> None:
        names = {"session_id": "sessionId", "cwd": "cwd", "model": "model"}
        draft.describe(**{name: text_at(value, field) for name, field in names.items()})
        if value.get("type") == "system":
            _read_system(draft, record, value, ends)
        elif is_message(message := object_at(value, "message")):
            subtype, uuid = text_at(value, "subtype"), id_at(value, "uuid")
            context = subtype if value.get("type") == "user" and subtype != "mid_turn_user_message" else ""
            message = {"id": uuid, "timestamp": value.get("timestamp"), **message}
            if response := writer.write(record, message, response=uuid, source=context or None):
                draft.report(response, usage_of(object_at(value, "usageMetadata")))
        else:
            record.skip(f"unknown type {text_at(value, 'type')!r}"[:100])
        ends[id_at(value, "uuid")] = draft.mark()

    feed_lines(source.lines(), draft, read_record)
    draft.id = draft.metadata.get("session_id", draft.id)
    return finish(NAME, source, [draft], main_count=1)


def _read_system(draft: Draft, record: Record, value: JsonObject, ends: dict[str, int]) -> None:
    kind, parent = text_at(value, "subtype"), id_at(value, "parentUuid")
    if kind == "rewind":
        if parent in ends:
            draft.undo(min(ends[parent], draft.mark()), "taken back by a rewind")
            record.skip("a rewind")
        else:
            draft.damage(record, "a rewind to an unknown record")
    elif kind == "chat_compression":
        parts = [
            part for content in objects_at(object_at(value, "systemPayload"), "compressedHistory") for part in list_at(content, "parts")
        ]
        texts = [text for part in parts if isinstance(part, dict) and (text := text_at(part, "text"))]
        item_id, time = draft.new_id(id_at(value, "uuid"), record), moment(value.get("timestamp")) or 0.0
        draft.compact(record, Compaction("\n".join(texts), id=item_id, created_at=time), KeepRule(draft.mark()))
        if len(texts) < len(parts):
            record.skip("unknown parts of the compressed history")
    else:
        record.skip("for the screen" if kind in SCREEN else f"unknown type {kind!r}"[:100])


class Requests:
    """Qwen Code reports the usage of each answer. A fork's copies keep their ids.

    Attributes:
        note: A sentence on requests that state only a total; empty if there are none.
    """

    MARKS = (b'"usageMetadata"',)

    def __init__(self, path: Path) -> None:  # noqa: ARG002 - its records name the session
        self.note = ""

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the request of an answer."""
        usage = object_at(value, "usageMetadata")
        counts = usage_of(usage)
        if value.get("type") != "assistant" or counts is None:
            return
        if not (count_at(usage, "promptTokenCount") or count_at(usage, "candidatesTokenCount")):
            self.note = "requests that state only a total, which counts as input"
        yield Request(
            f"qwen:{record_id}" if (record_id := id_at(value, "uuid")) else "",
            seconds(value.get("timestamp")),
            NAME,
            text_at(value, "model"),
            text_at(value, "cwd"),
            text_at(value, "sessionId"),
            text_at(value, "agentId"),
            **amounts_of(counts),
            reasoning=None if (thoughts := stated_at(usage, "thoughtsTokenCount")) is None else min(thoughts, counts.output_tokens),
            branch=text_at(value, "gitBranch"),
        )
