"""Writes one list of messages into a draft, with the system prompt before it and the response after it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from session.transcripts.call_ids import UNKNOWN_TOOL
from session.transcripts.draft import Draft
from session.transcripts.record import Record
from session.transcripts.record_feed import ReadRecord, feed
from session.transcripts.source import Source
from session.transcripts.values import JsonObject, moment, object_at
from session.transcripts.writer import Writer

from .find_lists import DISPLAY, MessageList
from .inspect_logs import resolve_attachments, usage_by_index
from .request_context import read_request_context

_RESPONSE = "the answer"
"""Name of the response that is logged next to the list."""
_SPEAKER = re.compile(r"^(user|assistant|tool|system): ?", re.MULTILINE)


def draft_conversation(
    name: str, source: Source, message_list: MessageList, number: str, used_ids: set[str], next_record: Callable[[Draft], Record]
) -> Draft:
    """Return the draft of one list of messages.

    Args:
        name: Name of the format.
        source: The file.
        message_list: The list.
        number: Distinguishes it from the file's other lists; empty if there are none.
        used_ids: Session ids used by other lists of the file. The new one is added.
        next_record: Returns the record for the next message.
    """
    context = read_request_context(message_list)
    metadata = {**context.metadata, "session_id": context.own_id}
    draft = Draft(name, source, _session_id(source, context.own_id, number, used_ids), metadata)
    writer = Writer(draft, joined=message_list.name == "input")
    writer.clock.at(*(moment(parent.get(key)) for parent in message_list.parents for key in ("timestamp", "created_at", "start_time")))
    if context.system is not None:
        feed(draft, next_record(draft), {"role": "system", "content": context.system}, _write_with(writer))
    last_response = ""
    usage = usage_by_index(message_list)
    for index, message in enumerate(_messages(message_list)):
        response = ""

        def write_message(_: Draft, record: Record, value: JsonObject) -> None:
            nonlocal response
            if value.get("requestor") == "user" and value.get("role") == "tool":
                record.skip("the result of a simulated user's tool, which the model never sees")
            else:
                response = writer.write(record, value)

        feed(draft, next_record(draft), message, write_message)
        last_response = response or last_response
        if response:
            draft.report(response, usage.get(index))
    if context.response and not _ends_with(message_list, context.response[-1]):
        for message in context.response:
            feed(draft, next_record(draft), message, _write_with(writer, _RESPONSE))
        last_response = _RESPONSE
    draft.report(last_response if context.response else "", context.usage)
    return draft


def _write_with(writer: Writer, response: str = "") -> ReadRecord:
    def write_message(_: Draft, record: Record, message: JsonObject) -> None:
        writer.write(record, message, response=response)

    return write_message


def _session_id(source: Source, own_id: str, number: str, used_ids: set[str]) -> str:
    fallback = f"{source.path.stem}:{number}" if number else source.path.stem
    session_id = own_id if own_id and not own_id.isdecimal() and own_id not in used_ids else fallback
    used_ids.add(session_id)
    return session_id


def _ends_with(message_list: MessageList, response: JsonObject) -> bool:
    """Return True if the list ends with the response, as in some logs."""
    last = message_list.messages[-1]
    return isinstance(last, dict) and last.get("role") == "assistant" and last.get("content") == response.get("content")


def _messages(message_list: MessageList) -> Iterator[object]:
    messages = message_list.messages
    if isinstance(messages, str):
        yield from _split_display(messages) if message_list.name == DISPLAY else [{"role": "user", "content": messages}]
        return
    attachments = object_at(message_list.parents[0], "attachments") if message_list.parents else {}
    for message in messages:
        yield resolve_attachments(message, attachments) if attachments else message


def _split_display(text: str) -> Iterator[JsonObject]:
    """Yield the messages of a conversation written out as one text.

    Calls are not written there, except that a message with nothing but calls is `None`. So an assistant message gets a call
    for each tool message that follows it.
    """
    pieces = _SPEAKER.split(text)
    turns = [(pieces[index], pieces[index + 1].strip("\n")) for index in range(1, len(pieces) - 1, 2)]
    result_counts = [0] * (len(turns) + 1)  # for each turn: the number of consecutive tool messages from there on
    for index in range(len(turns) - 1, -1, -1):
        result_counts[index] = result_counts[index + 1] + 1 if turns[index][0] == "tool" else 0
    for index, (role, content) in enumerate(turns):
        if role != "assistant":
            yield {"role": role, "content": content}
            continue
        is_silent = content == "None"
        calls = [{"name": UNKNOWN_TOOL} for _ in range(max(result_counts[index + 1], int(is_silent)))]
        yield {"role": role, "content": None if is_silent else content, "tool_calls": calls}
