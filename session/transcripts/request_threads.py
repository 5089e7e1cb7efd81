"""Sessions of a log of requests, each of which repeats the conversation so far, as traces of observability tools do.

A request whose prompt goes on from what an earlier one sent and answered adds its new messages to that session; any other begins one. The
first session of a conversation is a main one, its others are side requests and sub-agents.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from .account import TranscriptAccount
from .draft import Draft, finish
from .record import Record
from .record_feed import feed, text_size
from .source import COMPLETE, Line, Source, parse
from .usage import Counts
from .values import JsonObject, carried, list_at, text_at
from .writer import Writer, is_message

THOUGHTS = frozenset({"reasoning", "thinking", "redacted_thinking"})
"""Types of blocks that later requests may leave out."""
COMPARED = ("role", "content", "tool_calls", "function_call", "tool_call_id")
"""Fields by which a message is known again."""
COMPARED_LEVELS = 20
"""Levels of their values that are compared."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request to a model, or a record that is none.

    Attributes:
        number: The number of its line, or of its entry in a document.
        value: The record, whose text is weighed.
        conversation: The name of the conversation.
        is_named: True if the log names the conversation; False if it is only the trace, which the next turn may leave.
        time: Unix seconds; None if unknown.
        sent: The messages of the prompt.
        answered: Those of the answer.
        counts: The reported tokens; None if there are none.
        model: The model's name; empty if unknown.
        tools: Definitions of tools.
        reasons: Why parts of the record are not in the session. A record that is no request has nothing else.
        damage: What could not be read; empty if all could.
    """

    number: int
    value: JsonObject
    conversation: str = ""
    is_named: bool = False
    time: float | None = None
    sent: list[JsonObject] = field(default_factory=list)
    answered: list[JsonObject] = field(default_factory=list)
    counts: Counts | None = None
    model: str = ""
    tools: object = None
    reasons: tuple[str, ...] = ()
    damage: str = ""


def read_threads(name: str, source: Source, requests: Iterable[LoggedRequest], *, with_sidechains: bool) -> TranscriptAccount:
    """Return the sessions of the requests.

    Args:
        name: Name of the format.
        source: The file.
        requests: The records, in the order in which they were sent.
        with_sidechains: False if only main sessions are wanted.

    Raises:
        TranscriptError: The requests hold no messages.
    """
    threads = _Threads(name, source)
    others: list[LoggedRequest] = []  # records without messages: the first session has them
    for request in requests:
        if request.sent or request.answered:
            threads.write(threads.draft_of(request), request)
        else:
            others.append(request)
    main = threads.main or [Draft(name, source, source.path.stem)]
    for request in others:
        threads.write(main[0], request)
    return finish(name, source, [*main, *(threads.side if with_sidechains else [])], main_count=len(main))


def around(number: int, value: object, entries: Iterable[JsonObject], reason: str) -> Iterator[LoggedRequest]:
    """Yield a record for the text of a value that is in none of its entries, if there is any.

    Args:
        number: As for `LoggedRequest`.
        value: The value.
        entries: The entries in it that have records of their own.
        reason: Why it is not in the session.
    """
    if rest := text_size(value) - sum(map(text_size, entries)):
        yield LoggedRequest(number, {"": "." * rest}, reasons=(reason,))


def unread(line: Line) -> Iterator[LoggedRequest]:
    """Yield a record for the part of a line that no value stands for: damage, or nothing because the line is blank."""
    if line.problem:
        yield LoggedRequest(line.number, {}, damage=line.problem)
    elif not line.values:
        yield LoggedRequest(line.number, {}, reasons=("blank line",))


class _Threads:
    def __init__(self, name: str, source: Source) -> None:
        self.main: list[Draft] = []
        self.side: list[Draft] = []
        self._name, self._source = name, source
        self._writers: dict[int, Writer] = {}  # by the draft's identity
        self._records: dict[tuple[int, int], Record] = {}  # by the draft's identity and the number
        self._known: dict[int, int] = {}  # by the request's identity: messages of its prompt that its session has
        self._conversations: set[str] = set()
        self._ends: dict[tuple[str, bytes], Draft] = {}  # by the conversation and a hash of what was sent and answered

    def draft_of(self, request: LoggedRequest) -> Draft:
        """Return the session that a request goes on, or a new one."""
        owner = request.conversation if request.is_named else ""
        hashes = _hashes([*request.sent, *request.answered])
        known = next((count for count in range(len(request.sent), 0, -1) if (owner, hashes[count]) in self._ends), 0)
        draft = self._ends.pop((owner, hashes[known])) if known else self._begin(request)
        self._ends[owner, hashes[-1]] = draft
        self._known[id(request)] = known
        return draft

    def _begin(self, request: LoggedRequest) -> Draft:
        is_main = request.conversation not in self._conversations
        self._conversations.add(request.conversation)
        base = request.conversation or self._source.path.stem
        names: dict[str, object] = {"session_id": request.conversation, "sidechain": not is_main}
        draft = Draft(self._name, self._source, base if is_main else f"{base}:{len(self.side) + 1}", names)
        (self.main if is_main else self.side).append(draft)
        return draft

    def write(self, draft: Draft, request: LoggedRequest) -> None:
        """Write what is new of a request into its session. Requests of one line may be far apart in time."""
        key = id(draft), request.number
        record = self._records.get(key) or self._records.setdefault(key, draft.record(request.number))
        feed(draft, record, request.value, lambda *_: self._write(draft, record, request))

    def _write(self, draft: Draft, record: Record, request: LoggedRequest) -> None:
        writer = self._writers.setdefault(id(draft), Writer(draft))
        writer.clock.at(request.time)
        draft.describe(model=request.model, tools=carried(request.tools, 10_000_000) if request.tools else None)
        response = f"request {draft.mark()}"
        for message in request.sent[self._known.pop(id(request), 0) :]:
            _write_message(writer, record, message, "")
        written = [_write_message(writer, record, message, response) for message in request.answered]
        if any(written):
            draft.report(response, request.counts)
        record.reasons += request.reasons
        if request.damage:
            draft.damage(record, request.damage)


def _write_message(writer: Writer, record: Record, message: JsonObject, response: str) -> str:
    if is_message(message):
        return writer.write(record, message, response=response)
    record.skip(f"a message of unknown role {text_at(message, 'role')!r}"[:100])
    return ""


def _hashes(messages: list[JsonObject]) -> list[bytes]:
    """Return a hash of the first messages, for each number of them from none to all."""
    hashes = [b""]
    for message in messages:
        compared = {name: _shallow(_without_thoughts(message[name])) for name in COMPARED if message.get(name)}
        hashes.append(blake2b(hashes[-1] + json.dumps(compared, sort_keys=True).encode(), digest_size=16).digest())
    return hashes


def _shallow(value: object, levels: int = COMPARED_LEVELS) -> object:
    """Return a value without what is nested deeper. Of what is too deep to be read whole, more is left out the deeper it stands."""
    if isinstance(value, dict):
        return {name: _shallow(member, levels - 1) for name, member in value.items()} if levels else None
    if isinstance(value, list):
        return [_shallow(member, levels - 1) for member in value] if levels else None
    return value


def _without_thoughts(value: object) -> object:
    if not isinstance(value, list):
        return value
    return [block for block in value if not (isinstance(block, dict) and text_at(block, "type") in THOUGHTS)]


def json_of(value: object) -> object:
    """Return the value that a text holds as JSON, or the value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{", '"'):
        values, problem = parse(value)
        return values[0] if len(values) == 1 and problem in COMPLETE else value
    return value


def provider_form(message: JsonObject) -> JsonObject:
    """Return a message of OpenTelemetry's conventions, which has parts with a type, in a form that `Writer` knows; others unchanged."""
    parts = list_at(message, "parts")
    if not any(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts):
        return message
    return {**{name: member for name, member in message.items() if name != "parts"}, "content": [_block(part) for part in parts]}


def _block(part: object) -> object:
    """Return the block of a part: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-input-messages.json."""
    if not isinstance(part, dict):
        return part
    kind, content = text_at(part, "type"), part.get("content")
    medium = text_at(part, "modality")
    call = {"id": part.get("id"), "name": part.get("name")}
    match kind:
        case "text" | "compaction" if isinstance(content, str):
            return {"type": "text", "text": content}
        case "reasoning":
            return {"type": "thinking", "thinking": content}
        case "tool_call":
            return {"type": "tool_use", **call, "input": part.get("arguments")}
        case "server_tool_call":
            return {"type": "tool_use", **call, "input": part.get("server_tool_call")}
        case "tool_call_response":
            return {"type": "tool_result", "tool_use_id": part.get("id"), "content": part.get("response", part.get("result"))}
        case "server_tool_call_response":
            return {"type": "tool_result", "tool_use_id": part.get("id"), "content": part.get("server_tool_call_response")}
        case "blob" if medium in ("image", "document"):
            return {"type": medium, "source": {"type": "base64", "media_type": part.get("mime_type"), "data": content}}
        case "blob":
            return {"type": "audio" if medium == "audio" else medium, "data": content, "mimeType": part.get("mime_type")}
        case "uri" if medium in ("image", "document"):
            return {"type": f"{medium}_url", f"{medium}_url": part.get("uri")}
        case "file":
            return {"type": "file", "file_id": part.get("file_id"), "mime_type": part.get("mime_type")}
    return part
