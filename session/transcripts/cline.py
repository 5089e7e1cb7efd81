"""Reads Cline's session files: `….messages.json`, the copies that a compaction saves next to it, and `….json`, which names the first."""

from __future__ import annotations

from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import PurePosixPath, PureWindowsPath

from session.errors import TranscriptError
from session.items import Compaction

from .account import TranscriptAccount
from .draft import Draft, finish
from .record import Record
from .record_feed import feed_entries
from .source import Source
from .usage import split_total
from .values import JsonObject, count_at, id_at, list_at, moment, object_at, objects_at, text_at
from .writer import Writer

NAME = "cline"

_NOTICE = "<SYSTEM_NOTICE>"
_SUMMARY_KIND = "compaction_summary"


def claims(value: object) -> bool:
    """Return True if the value is a file of messages, or one that names such a file."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("messages"), list):
        return "sessionId" in value and "agent" in value and ("system_prompt" in value or "updated_at" in value)
    return isinstance(value.get("messages_path"), str) and isinstance(value.get("session_id"), str)


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:
    """Return the session in the file, or in the file of messages that it names. The system prompt is the first record.

    Raises:
        TranscriptError: The file contains no messages, or names a file of messages that is not in the same folder.
    """
    document = source.document_object
    if not isinstance(document.get("messages"), list):
        return read(_messages_file(source, document), with_sidechains=with_sidechains)
    session_id = id_at(document, "sessionId")
    metadata = {"session_id": session_id, "agent": text_at(document, "agent")}
    draft = Draft(NAME, source, session_id or source.path.stem, metadata)
    system_prompt = text_at(document, "system_prompt")
    head: list[object] = [{"role": "system", "content": system_prompt}] if system_prompt else []
    feed_entries([*head, *list_at(document, "messages")], draft, _ClineMessageReader(draft).read_message)
    return finish(NAME, source, [draft])


def _messages_file(source: Source, document: JsonObject) -> Source:
    """Return the file of messages in the folder of the file that names it, even if the name has the path of another machine."""
    path = text_at(document, "messages_path")
    names = (PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name, f"{source.path.stem}.messages.json")
    for name in names:
        try:
            sibling_path = source.path.with_name(name)
        except ValueError:  # not a valid file name
            continue
        sibling = Source(sibling_path, source.on_read, is_named_by_data=True)
        with suppress(TranscriptError):  # the file does not exist, or is a link
            if sibling_path != source.path and isinstance(sibling.document_object.get("messages"), list):
                return sibling
    raise TranscriptError(source.path, f"has no messages; they are in {names[1]}, which is not in the same folder; pass that file")


class _ClineMessageReader:
    """Reads the messages of one session."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.writer = Writer(draft)

    def read_message(self, _: Draft, record: Record, message: JsonObject) -> None:
        """Read one message."""
        if model := text_at(object_at(message, "modelInfo"), "id"):
            self.draft.metadata["model"] = model
        if text_at(object_at(message, "metadata"), "kind") == _SUMMARY_KIND:
            self._read_compaction(record, message)
            return
        response = ""
        for part, source in _split_by_source(message):
            response = self.writer.write(record, part, source=source) or response
        metrics = object_at(message, "metrics")
        if response and metrics:
            cache_read, cache_write = count_at(metrics, "cacheReadTokens"), count_at(metrics, "cacheWriteTokens")
            counts = split_total(count_at(metrics, "inputTokens"), cache_read, cache_write, count_at(metrics, "outputTokens"))
            self.draft.report(response, counts)

    def _read_compaction(self, record: Record, message: JsonObject) -> None:
        texts = [text_at(block, "text") for block in objects_at(message, "content")]
        time = self.writer.clock.at(moment(message.get("ts")))
        item_id = self.draft.new_id(id_at(message, "id"), record)
        tokens_before = count_at(object_at(message, "metadata"), "tokensBefore")
        extra = {"tokens_before": tokens_before} if tokens_before else {}
        self.draft.put(record, Compaction("\n".join(texts) or text_at(message, "content"), id=item_id, created_at=time, extra=extra))


def _split_by_source(message: JsonObject) -> list[tuple[JsonObject, str | None]]:
    """Return the message in pieces: what the user wrote (None), and what the tool added, with its source."""
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, list) or not content:
        return [(message, None)]
    runs = groupby(map(_as_shown, content), key=itemgetter(1))
    return [({**message, "content": [block for block, _ in run]}, source) for source, run in runs]


def _as_shown(block: object) -> tuple[object, str | None]:
    """Return the block as the model saw it, and its source if the tool wrote it."""
    if not isinstance(block, dict):
        return block, None
    if block.get("type") == "file":
        return _document(block), "file"
    if block.get("type") == "text" and text_at(block, "text").startswith(_NOTICE):
        return block, "compaction"
    if block.get("type") == "tool_result":
        return {**block, "is_error": block.get("is_error") is True or _is_failure(block.get("content"))}, None
    return block, None


def _document(block: JsonObject) -> JsonObject:
    source = {"type": "text", "media_type": "text/plain", "data": text_at(block, "content")}
    return {"type": "document", "source": source, "title": text_at(block, "path")}


def _is_failure(content: object) -> bool:
    """Return True if the tool reports that everything it was asked to do failed."""
    if not isinstance(content, list) or not content:
        return False
    return all(isinstance(result, dict) and result.get("success") is False for result in content)
