"""Cline's session files: `….messages.json`, the copies that a compaction leaves beside it, and `….json`, which names the first."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePosixPath, PureWindowsPath

from session.errors import TranscriptError
from session.items import Compaction

from .account import TranscriptAccount
from .draft import Draft, Record, finish
from .feeding import feed_entries
from .source import Source
from .usages import inside
from .values import JsonObject, count_at, id_at, list_at, moment, object_at, text_at
from .writer import Writer

NAME = "cline"

_NOTICE = "<SYSTEM_NOTICE>"
_SUMMARIES = ("compaction_summary",)


def claims(value: object) -> bool:
    """Whether the value is one of these files."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("messages"), list):
        return "sessionId" in value and "agent" in value and ("system_prompt" in value or "updated_at" in value)
    return isinstance(value.get("messages_path"), str) and isinstance(value.get("session_id"), str)


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:
    """The one session in the file, or in the file of messages that it names. The system prompt is the first record.

    Raises:
        TranscriptError: Nobody says anything in it, or it names a file of messages that is not beside it.
    """
    document = source.document
    whole = document if isinstance(document, dict) else {}
    if not isinstance(whole.get("messages"), list):
        return read(_messages_of(source, whole), sidechains=sidechains)
    own_id = id_at(whole, "sessionId")
    metadata = {name: value for name, value in (("session_id", own_id), ("agent", text_at(whole, "agent"))) if value}
    draft = Draft(NAME, source, own_id or source.path.stem, metadata)
    system = text_at(whole, "system_prompt")
    head: list[object] = [{"role": "system", "content": system}] if system else []
    feed_entries([*head, *list_at(whole, "messages")], draft, _Reader(draft).take)
    return finish(NAME, source, [draft])


def _messages_of(source: Source, whole: JsonObject) -> Source:
    """The file of messages: beside this one, wherever it was when it was written."""
    path = text_at(whole, "messages_path")
    names = (PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name, f"{source.path.stem}.messages.json")
    for name in names:
        try:
            path_beside = source.path.with_name(name)
        except ValueError:  # no name that a file can have
            continue
        beside = Source(path_beside, source.on_read, is_named_by_data=True)
        with suppress(TranscriptError):  # there is no such file, or it is a link
            if path_beside != source.path and isinstance(_messages(beside), list):
                return beside
    raise TranscriptError(source.path, f"only describes a session; its messages are in {names[1]}, which is not beside it: pass that file")


def _messages(source: Source) -> object:
    return source.document.get("messages") if isinstance(source.document, dict) else None


class _Reader:
    """Reads the messages of one session."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.writer = Writer(draft)

    def take(self, _: Draft, record: Record, message: JsonObject) -> None:
        """Reads one message."""
        if model := text_at(object_at(message, "modelInfo"), "id"):
            self.draft.metadata["model"] = model
        if text_at(object_at(message, "metadata"), "kind") in _SUMMARIES:
            self._compaction(record, message)
            return
        said = ""
        for part, source in _split(message):
            said = self.writer.write(record, part, source=source) or said
        metrics = object_at(message, "metrics")
        if said and metrics:
            read, write = count_at(metrics, "cacheReadTokens"), count_at(metrics, "cacheWriteTokens")
            self.draft.report(said, inside(count_at(metrics, "inputTokens"), read, write, count_at(metrics, "outputTokens")))

    def _compaction(self, record: Record, message: JsonObject) -> None:
        told = [text_at(block, "text") for block in list_at(message, "content") if isinstance(block, dict)]
        time = self.writer.clock.at(moment(message.get("ts")))
        item_id = self.draft.new_id(id_at(message, "id"), record)
        before = count_at(object_at(message, "metadata"), "tokensBefore")
        extra = {"tokens_before": before} if before else {}
        self.draft.put(record, Compaction("\n".join(told) or text_at(message, "content"), id=item_id, created_at=time, extra=extra))


def _split(message: JsonObject) -> list[tuple[JsonObject, str | None]]:
    """The message, in pieces where the tool put something beside the user's own words: each with what it is about."""
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, list):
        return [(message, None)]
    runs: list[tuple[list[object], str | None]] = []
    for block in content:
        shown, about = _shown(block)
        if runs and runs[-1][1] == about:
            runs[-1][0].append(shown)
        else:
            runs.append(([shown], about))
    return [({**message, "content": blocks}, about) for blocks, about in runs] or [(message, None)]


def _shown(block: object) -> tuple[object, str | None]:
    if not isinstance(block, dict):
        return block, None
    if block.get("type") == "file":
        return _document(block), "file"
    if block.get("type") == "text" and text_at(block, "text").startswith(_NOTICE):
        return block, "compaction"
    if block.get("type") == "tool_result":
        return {**block, "is_error": block.get("is_error") is True or _failed(block.get("content"))}, None
    return block, None


def _document(block: JsonObject) -> JsonObject:
    source = {"type": "text", "media_type": "text/plain", "data": text_at(block, "content")}
    return {"type": "document", "source": source, "title": text_at(block, "path")}


def _failed(content: object) -> bool:
    """Whether the tool's answer says of all it was asked that it failed."""
    return isinstance(content, list) and bool(content) and all(isinstance(one, dict) and one.get("success") is False for one in content)
