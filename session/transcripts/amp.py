"""Reads Amp's threads: documents `{id: "T-…", created, env, messages, usageLedger}`, their messages in Anthropic's form.

- A tool's result is `{"type": "tool_result", "toolUseID", "run": {status, result, error, progress}}`.
- `info` messages hold a summary, which replaces what is before it, or name the thread that this one goes on from.
- Files that the user named stand beside the content. They become CONTEXT, as do files of guidance.
- Usage stands in the messages, before 2026 in the ledger: https://docs.rs/crate/csusage-adapter-amp/0.0.2/source/src/README.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from session.items import Compaction

from .account import TranscriptAccount
from .block_parser import text_or_json
from .compactions import KeepRule
from .draft import Draft, finish
from .places import Place
from .record import Record
from .record_feed import feed_entries, skip_strangers, text_size
from .requests import Request, amounts_of
from .source import Source
from .usage import Counts, split_total
from .values import JsonObject, count_at, list_at, moment, object_at, objects_at, text_at
from .writer import Writer, is_message

NAME = "amp"
PLACES = (Place("$data/amp", "threads/T-*.json", "AMP_DATA_DIR"),)
FAILED = frozenset({"error", "cancelled", "rejected-by-user"})
"""States of a call that failed."""
KNOWN = frozenset({"role", "messageId", "content", "usage", "state", "meta", "timestamp", "fileMentions", "discoveredGuidanceFiles"})
"""Fields of a message that are read, or that the model never sees."""
SCREEN = frozenset({"agentMode", "dtwMessageID", "originalToolUseInput", "parentToolUseId", "readAt", "turnElapsedMs"})
"""Fields that are for the screen."""


def claims(value: object) -> bool:
    """Return True if the value is a thread of Amp."""
    return isinstance(value, dict) and text_at(value, "id").startswith("T-") and isinstance(value.get("messages"), list)


def usage_of(report: JsonObject) -> Counts | None:
    """Return the tokens of a message's usage, or None if it has none. Of some providers, the input includes the cached tokens."""
    names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")
    counts = Counts(*(count_at(report, name) for name in names))
    if not any(counts):
        total = count_at(report, "totalInputTokens") or count_at(report, "totalTokens")
        return Counts(total) if total else None
    includes_cache = counts.input_tokens == count_at(report, "totalInputTokens")
    return split_total(*counts[:4]) if includes_cache else counts


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents have threads of their own
    """Return the session in the document.

    Raises:
        TranscriptError: The document contains no messages.
    """
    thread = source.document_object
    names = {"session_id": text_at(thread, "id"), "cwd": _folder(thread), "title": text_at(thread, "title")}
    draft = Draft(NAME, source, text_at(thread, "id"), {name: value for name, value in names.items() if value})
    writer = Writer(draft)

    def read_message(_: Draft, record: Record, value: JsonObject) -> None:
        usage = object_at(value, "usage")
        draft.describe(model=text_at(usage, "model"))
        if text_at(value, "role") == "info":
            _read_info(draft, record, value)
        elif is_message(value) and "content" in value:
            sent = object_at(value, "meta").get("sentAt") or usage.get("timestamp")
            for file in [*objects_at(object_at(value, "fileMentions"), "files"), *objects_at(value, "discoveredGuidanceFiles")]:
                if text := text_at(file, "content"):
                    draft.put_user(record, text, "", moment(sent) or 0.0, text_at(file, "uri") or "file")
            content = [block for part in list_at(value, "content") if (block := _block(part, record)) is not None]
            message = {"role": value["role"], "content": content or value["content"], "timestamp": sent}
            if response := writer.write(record, message):
                draft.report(response, usage_of(usage))
        else:
            record.skip(f"a message of unknown role {text_at(value, 'role')!r}"[:100])
        skip_strangers(record, object_at(value, "fileMentions"), "files")
        skip_strangers(record, value, "discoveredGuidanceFiles")
        for name, member in value.items():
            if name not in KNOWN | SCREEN and text_size(member):
                record.skip(f"unknown field {name!r}"[:100])

    feed_entries(list_at(thread, "messages"), draft, read_message)
    return finish(NAME, source, [draft], main_count=1)


def _block(part: object, record: Record) -> object:
    """Return a block in Anthropic's form; None for a call that has no result yet."""
    if isinstance(part, dict) and part.get("type") == "image" and "mediaType" in object_at(part, "source"):
        source = object_at(part, "source")
        return {"type": "image", "source": {**source, "media_type": source["mediaType"]}}
    if not isinstance(part, dict) or part.get("type") != "tool_result" or "run" not in part:
        return part
    run = object_at(part, "run")
    failed = text_at(run, "status") in FAILED
    output = next((run[name] for name in ("result", "error", "progress") if run.get(name) is not None), None)
    if output is None and not failed:
        record.skip("a call without a result yet")
        return None
    if isinstance(output, dict):
        output = output.get("content") or (output.get("message") if failed else None) or output
    return {"type": "tool_result", "tool_use_id": part.get("toolUseID"), "is_error": failed, "content": output or text_at(run, "status")}


def _read_info(draft: Draft, record: Record, value: JsonObject) -> None:
    skip_strangers(record, value, "content")
    for block in objects_at(value, "content"):
        summary = object_at(block, "summary")
        if text := text_at(summary, "summary"):
            draft.compact(record, Compaction(text, id=draft.new_id("", record)), KeepRule(draft.mark()))
        elif text_at(block, "type") == "summary" and text_at(summary, "thread"):
            record.skip("names the thread that this one goes on from")
        else:
            record.skip(f"unknown type {text_at(block, 'type')!r} of information"[:100])


def _folder(thread: JsonObject) -> str:
    """Return the folder in which the assistant worked; empty if the thread does not say."""
    for tree in objects_at(object_at(object_at(thread, "env"), "initial"), "trees"):
        return unquote(text_at(tree, "uri").removeprefix("file://"))
    return ""


class Requests:
    """A message has the usage of its request. An event of the ledger counts if no message has its usage, as those of titles do."""

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: Path of the thread, which names itself.
        """

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the requests of a thread."""
        thread, folder = text_at(value, "id"), _folder(value)
        reported: set[str] = set()
        for message in objects_at(value, "messages"):
            usage, number = object_at(message, "usage"), text_or_json(message.get("messageId"))
            if (counts := usage_of(usage)) is not None:
                reported.add(number)
                time = moment(usage.get("timestamp")) or moment(object_at(message, "meta").get("sentAt")) or moment(value.get("created"))
                request_id = f"{thread}:{number}" if thread and "messageId" in message else ""
                yield Request(request_id, time, NAME, text_at(usage, "model"), folder, thread, **amounts_of(counts))
        for event in objects_at(object_at(value, "usageLedger"), "events"):
            number, tokens = text_or_json(event.get("toMessageId")), object_at(event, "tokens")
            if text_at(event, "operationType") in ("", "inference") and number in reported:
                reported.discard(number)  # a further event of this message is another request
                continue
            amounts = Counts(count_at(tokens, "input"), 0, 0, count_at(tokens, "output"))
            request_id = f"{thread}:{text_at(event, 'id')}" if text_at(event, "id") else ""
            time = moment(event.get("timestamp"))
            yield Request(request_id, time, NAME, text_at(event, "model"), folder, thread, **amounts_of(amounts))
