"""Reads exports of OpenTelemetry's conventions for generative AI: OTLP as JSON, a document or lines, with spans and log records.

https://github.com/open-telemetry/semantic-conventions-genai. A span of a request has its usage, and its messages in attributes, in its
events or in log records that name it; until 1.36 each message was an event of its own. A span around other requests repeats them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from .account import TranscriptAccount
from .record_feed import text_size
from .request_threads import LoggedRequest, provider_form, read_threads, unread
from .requests import Request, amounts_of
from .source import COMPLETE, Line, Source, parse
from .usage import Counts, dollars, split_total
from .values import JsonObject, count_at, moment, object_at, objects_at, stated_at, text_at

NAME = "otel"
BATCHES = (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"))
"""Names of the lists that hold one another."""
INFERENCE = frozenset({"", "chat", "generate_content", "text_completion", "embeddings"})
"""Operations that are one request to a model; an agent's and a workflow's are made of several."""
AGENTS = frozenset({"invoke_agent", "invoke_workflow"})
EVENTS = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")} | {"gen_ai.choice": "assistant"}
"""The roles of messages that are events of their own."""
CHOICE = "gen_ai.choice"
DEPTH_MAX = 100
"""Spans around a span to look at."""
DETAILS = "gen_ai.client.inference.operation.details"
AMOUNTS = (
    ("input_tokens", "prompt_tokens"),
    ("cache_read.input_tokens", "cache_read_input_tokens", "cached_tokens"),
    ("cache_creation.input_tokens", "cache_creation_input_tokens"),
    ("output_tokens", "completion_tokens"),
)
"""Names of the tokens of the prompt, of its cached parts and of the answer, the current ones first."""
KNOWN = tuple(
    f"gen_ai.{name}"
    for name in (
        *(
            "agent.",
            "conversation.",
            "data_source.",
            "embeddings.",
            "evaluation.",
            "event.",
            "input.",
            "operation.",
            "output.",
            "prompt.name",
        ),
        *("provider.", "request.", "response.", "system", "token.", "tool.", "usage.", "workflow.", "openai.", "azure."),
    )
)
"""Attributes of the conventions. Another one of theirs may hold messages."""


def claims(value: object) -> bool:
    """Return True if the value is a batch of spans or log records, or a list of such, with a request to a model."""
    batches = value if isinstance(value, list) else [value]
    return any(_is_ours(entry) for batch in batches if isinstance(batch, dict) for entry, *_ in _entries(batch))


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:
    """Return the sessions in the file: one for each conversation, else for each trace, and those of its side requests.

    Raises:
        TranscriptError: The file contains no messages.
    """
    return read_threads(NAME, source, map(_logged, _spans(source)), with_sidechains=with_sidechains)


@dataclass(slots=True)
class _Span:
    """A span with the log records that belong to it, or a record that belongs to none.

    Attributes:
        number: The number of its line, or of the entry in a document.
        value: The record.
        time: Unix seconds; None if unknown.
        attributes: Its attributes, and those of an event with details of the request.
        service: The program that sent it.
        messages: Messages that are events of their own, with the names of these.
        reasons: Why parts of it are not read.
        why: Why none of it is read; empty if it may be a request.
        is_request: True if it is a request to a model.
        damage: What could not be read; empty if all could.
    """

    number: int
    value: JsonObject
    time: float | None = None
    attributes: JsonObject = field(default_factory=dict)
    service: str = ""
    messages: list[tuple[str, JsonObject]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    why: str = ""
    is_request: bool = False
    damage: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The ids of the trace and the span."""
        return text_at(self.value, "traceId"), text_at(self.value, "spanId")

    @property
    def parent(self) -> tuple[str, str]:
        """The ids of the trace and the span around it."""
        return text_at(self.value, "traceId"), text_at(self.value, "parentSpanId")

    @property
    def operation(self) -> str:
        """What it did."""
        return text_at(self.attributes, "gen_ai.operation.name")

    @property
    def conversation(self) -> str:
        """The name of the conversation; empty if it has none."""
        return text_at(self.attributes, "gen_ai.conversation.id", "session.id")


def _spans(source: Source) -> list[_Span]:
    """Return all records of a file in the order of their times."""
    document, lines = source.document_or_lines()
    spans: list[_Span] = []
    logs: list[_Span] = []
    others: list[_Span] = []
    time: float | None = None
    numbers = count(1)  # of entries in a document
    for line in lines if document is None else [Line(0, tuple(document) if isinstance(document, list) else (document,), None)]:
        for value in line.values:
            entries = list(_entries(value)) if isinstance(value, dict) else []
            number = line.number or next(numbers)
            for entry, service, is_log in entries:
                time = _nanos(entry) or time
                (logs if is_log else spans).append(_Span(number, entry, time, _attributes(entry), service))
                number = line.number or next(numbers)
            if not entries:
                kind = text_at(value, "type") if isinstance(value, dict) else type(value).__name__
                others.append(_Span(number, {"": value}, time, why=f"unknown type {kind!r}"[:100]))
            elif rest := text_size(value) - sum(text_size(entry) for entry, *_ in entries):
                others.append(_Span(number, {"": "." * rest}, time, why="describes where the spans come from"))
        others += [_Span(one.number, one.value, time, why="".join(one.reasons), damage=one.damage) for one in unread(line)]
    own = {span.key: span for span in reversed(spans)}
    for span in spans:
        for event in objects_at(span.value, "events"):
            _add_event(span, text_at(event, "name"), _attributes(event), None)
        if own[span.key] is not span and span.key[1]:
            span.why = "repeats a span"
    for log in logs:
        name = _event_name(log.value)
        owner = own.setdefault(log.key, log) if log.key[1] or name in EVENTS else log
        _add_event(owner, name, log.attributes, _decoded(log.value.get("body")))
        if owner is not log:
            log.why = "its messages are those of its span"
    _tell_requests([span for span in (*spans, *logs) if not span.why and _is_ours(span.value)])
    return sorted([*spans, *logs, *others], key=lambda span: span.time or 0.0)


def _entries(value: JsonObject) -> Iterator[tuple[JsonObject, str, bool]]:
    """Yield the spans and log records of a batch, each with the name of the service, and whether it is a log record."""
    for resources, scopes, entries in BATCHES:
        for resource in objects_at(value, resources):
            service = text_at(_attributes(object_at(resource, "resource")), "service.name")
            for scope in objects_at(resource, scopes):
                yield from ((entry, service, entries == "logRecords") for entry in objects_at(scope, entries))


def _is_ours(entry: JsonObject) -> bool:
    names = (
        text_at(attribute, "key") for holder in (entry, *objects_at(entry, "events")) for attribute in objects_at(holder, "attributes")
    )
    events = (text_at(event, "name") for event in objects_at(entry, "events"))
    return any(name.startswith("gen_ai.") for name in (_event_name(entry), *events, *names))


def _event_name(log: JsonObject) -> str:
    return text_at(log, "eventName") or text_at(_attributes(log), "event.name")


def _add_event(span: _Span, name: str, attributes: JsonObject, body: object) -> None:
    """Add what an event says of its request."""
    if name == DETAILS:
        span.attributes = {**attributes, **(body if isinstance(body, dict) else {}), **span.attributes}
    elif name in EVENTS:
        content = body if body is not None else _json(attributes.get("gen_ai.event.content"))
        span.messages.append((name, content if isinstance(content, dict) else attributes if content is None else {"content": content}))
    elif name.startswith("gen_ai.") and not name.startswith("gen_ai.evaluation."):
        span.reasons.append(f"unknown event {name!r}"[:100])


def _tell_requests(spans: list[_Span]) -> None:
    """Mark the spans that are requests: of those that hold one another the innermost with usage; agents where nothing else has usage."""
    reported = {id(span) for span in spans if _counts(span.attributes) is not None}
    with_requests = {span.key[0] for span in spans if span.operation in INFERENCE and id(span) in reported}
    requests = [span for span in spans if span.operation in INFERENCE or (span.operation in AGENTS and span.key[0] not in with_requests)]
    by_key = {span.key: span for span in requests}
    repeating: set[int] = set()
    parents = {span.key: span.parent for span in spans}
    for span in requests:
        key: tuple[str, str] | None = span.parent
        for _ in range(DEPTH_MAX):
            if (outer := by_key.get(key) if key else None) is not None:
                repeating |= {id(outer)} if id(span) in reported else {id(span)} if id(outer) in reported else set()
            key = parents.get(key) if key else None
    for span in requests:
        span.is_request = id(span) not in repeating


def _logged(span: _Span) -> LoggedRequest:
    conversation, attributes = span.conversation or span.key[0], span.attributes
    if not span.is_request:
        why = span.why or ("" if span.damage else "not a request to a model, or one around the requests that it is made of")
        return LoggedRequest(span.number, span.value, time=span.time, reasons=(*span.reasons, why) if why else (), damage=span.damage)
    sent, answered = _messages(attributes.get("gen_ai.input.messages")), _messages(attributes.get("gen_ai.output.messages"))
    if system := _json(attributes.get("gen_ai.system_instructions")):
        sent = [
            provider_form({"role": "system", "parts": system} if isinstance(system, list) else {"role": "system", "content": system}),
            *sent,
        ]
    sent = sent or [_event_message(name, event) for name, event in span.messages if name != CHOICE]
    answered = answered or [_event_message(name, event) for name, event in span.messages if name == CHOICE]
    unknown = [f"unknown attribute {name!r}"[:100] for name in attributes if name.startswith("gen_ai.") and not name.startswith(KNOWN)]
    uncaptured = [] if sent or answered else ["a request whose messages were not captured"]
    choices = ["left out other choices than the first"] if len(answered) > 1 else []
    return LoggedRequest(
        span.number,
        span.value,
        conversation,
        bool(span.conversation),
        span.time,
        sent,
        answered[:1],
        _counts(attributes),
        _model(attributes),
        _json(attributes.get("gen_ai.tool.definitions")),
        (*span.reasons, *unknown, *uncaptured, *choices),
    )


def _messages(value: object) -> list[JsonObject]:
    """Return the messages of an attribute: a list, or JSON, or a text that some programs write in its place."""
    messages = _json(value)
    if isinstance(messages, str) and messages:
        return [{"role": "user", "content": messages}]
    return [provider_form(message) for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []


def _event_message(name: str, event: JsonObject) -> JsonObject:
    message = {**event, **object_at(event, "message")}
    if (calls := _json(message.get("tool_calls"))) is not None:
        message["tool_calls"] = calls
    if name == "gen_ai.tool.message":
        message = {"tool_call_id": message.get("id"), **message}
    return {"content": None, **message, "role": EVENTS[name]}


def _counts(attributes: JsonObject) -> Counts | None:
    """Return the reported tokens, or None if there are none. The input includes cached tokens, except where they are more."""
    total, read, written, output = (
        next(filter(None, (count_at(attributes, f"gen_ai.usage.{name}") for name in group)), 0) for group in AMOUNTS
    )
    if not (total or read or written or output):
        return None
    return Counts(total, read, written, output) if read + written > total else split_total(total, read, written, output)


def _model(attributes: JsonObject) -> str:
    return text_at(attributes, "gen_ai.response.model", "gen_ai.request.model")


def _attributes(holder: JsonObject) -> JsonObject:
    return _pairs(holder.get("attributes"))


def _pairs(pairs: object) -> JsonObject:
    members: Iterable[object] = pairs if isinstance(pairs, list) else ()
    return {text_at(pair, "key"): _decoded(pair.get("value")) for pair in members if isinstance(pair, dict)}


def _decoded(value: object) -> object:
    """Return the JSON value of one in the form of OTLP: `{"stringValue": …}` and the like."""
    if not isinstance(value, dict):
        return value
    for name in ("stringValue", "boolValue", "doubleValue"):
        if name in value:
            return value[name]
    if "intValue" in value:  # 64 bits, which are a text in JSON
        number = value["intValue"]
        return int(number) if isinstance(number, str) and number.isdecimal() and len(number) < 20 else number
    if "arrayValue" in value:
        return [_decoded(member) for member in objects_at(object_at(value, "arrayValue"), "values")]
    return _pairs(object_at(value, "kvlistValue").get("values")) if "kvlistValue" in value else None


def _json(value: object) -> object:
    """Return the value that a text holds as JSON, or the value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        values, problem = parse(value)
        return values[0] if len(values) == 1 and problem in COMPLETE else value
    return value


def _nanos(entry: JsonObject) -> float | None:
    for name in ("startTimeUnixNano", "timeUnixNano", "observedTimeUnixNano"):
        number = _decoded({"intValue": entry.get(name)})
        if (time := moment(number) if isinstance(number, int) else None) is not None:
            return time
    return None


class Requests:
    """The requests of a file. Which spans repeat others is known only from all of them, so the file is read at its first value."""

    def __init__(self, path: Path) -> None:
        self._path: Path | None = path

    def read(self, _: JsonObject) -> Iterator[Request]:
        """Yield all requests of the file, once."""
        path, self._path = self._path, None
        for span in _spans(Source(path)) if path else ():
            counts = _counts(span.attributes) if span.is_request else None
            if counts is not None:
                name = text_at(span.attributes, "gen_ai.response.id") or ".".join(span.key)
                yield Request(
                    f"otel:{name}" if name != "." else "",
                    span.time,
                    NAME,
                    _model(span.attributes),
                    span.service,
                    span.conversation or span.key[0],
                    **amounts_of(counts),
                    reasoning=stated_at(span.attributes, "gen_ai.usage.reasoning.output_tokens"),
                    cost=dollars(span.attributes.get("gen_ai.usage.cost")),
                )
