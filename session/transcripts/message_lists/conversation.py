"""One list of messages, written into a draft: with the system prompt before it, and the answer after it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from session.transcripts.draft import Draft, Record
from session.transcripts.feeding import UNKNOWN_TOOL, feed
from session.transcripts.source import Source
from session.transcripts.values import JsonObject, moment, object_at
from session.transcripts.writer import Writer

from .find import DISPLAY, Found
from .inspecting import resolved, usages_by_message
from .request import around

_ANSWER = "the answer"
_SPEAKER = re.compile(r"^(user|assistant|tool|system): ?", re.MULTILINE)


def write(name: str, source: Source, found: Found, number: str, taken: set[str], next_record: Callable[[Draft], Record]) -> Draft:
    """The draft of one list of messages.

    Args:
        name: Of the format.
        source: The file.
        found: The list.
        number: Tells it from the file's other lists; empty where there is none.
        taken: The session ids that others of the file have already.
        next_record: Gives the record for the next message.
    """
    beside = around(found)
    metadata = beside.metadata | ({"session_id": beside.own_id} if beside.own_id else {})
    draft = Draft(name, source, _session_id(source, beside.own_id, number, taken), metadata)
    writer = Writer(draft, joined=found.name == "input")
    writer.clock.at(*(moment(holder.get(key)) for holder in found.around for key in ("timestamp", "created_at", "start_time")))
    if beside.system is not None:
        feed(draft, next_record(draft), {"role": "system", "content": beside.system}, _written_by(writer))
    last = ""
    usages = usages_by_message(found)
    for place, message in enumerate(_messages(found)):
        said = ""

        def take(_: Draft, record: Record, value: JsonObject) -> None:
            nonlocal said
            if value.get("requestor") == "user" and value.get("role") == "tool":
                record.skip("answers a tool of the simulated user's, which the model does not see")
            else:
                said = writer.write(record, value)

        feed(draft, next_record(draft), message, take)
        last = said or last
        if said:
            draft.report(said, usages.get(place))
    if beside.answer and not _is_in(beside.answer, found):
        for message in beside.answer:
            feed(draft, next_record(draft), message, _written_by(writer, _ANSWER))
        last = _ANSWER
    draft.report(last if beside.answer else "", beside.usage)
    return draft


def _written_by(writer: Writer, response: str = "") -> Callable[[Draft, Record, JsonObject], None]:
    def take(_: Draft, record: Record, message: JsonObject) -> None:
        writer.write(record, message, response=response)

    return take


def _session_id(source: Source, own_id: str, number: str, taken: set[str]) -> str:
    stem = f"{source.path.stem}:{number}" if number else source.path.stem
    found = own_id if own_id and not own_id.isdecimal() and own_id not in taken else stem
    taken.add(found)
    return found


def _is_in(answer: list[JsonObject], found: Found) -> bool:
    """Whether the list ends with the answer: some logs add it, some do not."""
    last = found.messages[-1]
    return isinstance(last, dict) and last.get("role") == "assistant" and last.get("content") == answer[-1].get("content")


def _messages(found: Found) -> Iterator[object]:
    if isinstance(found.messages, str):
        yield from _displayed(found.messages) if found.name == DISPLAY else [{"role": "user", "content": found.messages}]
        return
    attachments = object_at(found.around[0], "attachments") if found.around else {}
    for message in found.messages:
        yield resolved(message, attachments) if attachments else message


def _displayed(text: str) -> Iterator[JsonObject]:
    """The messages that were written out as one text. Of calls nothing is written there, or `None` where nothing else was said."""
    pieces = _SPEAKER.split(text)
    said = [(pieces[place], pieces[place + 1].strip("\n")) for place in range(1, len(pieces) - 1, 2)]
    answers = [0] * (len(said) + 1)  # for each turn, how many answers of tools begin there
    for place in range(len(said) - 1, -1, -1):
        answers[place] = answers[place + 1] + 1 if said[place][0] == "tool" else 0
    for place, (role, words) in enumerate(said):
        if role != "assistant":
            yield {"role": role, "content": words}
            continue
        silent = words == "None"
        calls = [{"name": UNKNOWN_TOOL} for _ in range(max(answers[place + 1], int(silent)))]
        yield {"role": role, "content": None if silent else words, "tool_calls": calls}
