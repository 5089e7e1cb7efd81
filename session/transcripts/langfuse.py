"""Reads exports of Langfuse: a trace with its observations, lists of observations, or lines of them, with names in either style.

https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields. A generation is a request: its input repeats the
conversation so far, in the form in which the application logged it. Types of usage exclude one another, unless the total says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .account import TranscriptAccount
from .block_parser import text_or_json
from .message_lists.find_lists import find_lists
from .message_lists.request_context import read_request_context, response_messages
from .record_feed import text_size
from .request_threads import LoggedRequest, provider_form, read_threads, unread
from .requests import Request, amounts_of
from .source import COMPLETE, Line, Source, parse
from .usage import Counts, dollars, split_total
from .values import JsonObject, count_at, moment, object_at, objects_at, text_at
from .writer import is_message

NAME = "langfuse"
REQUESTS = ("GENERATION", "EMBEDDING")
CACHED = (("cached", "cache_read"), ("cache_creation", "cache_write"))
"""Parts of the names of input that was read from the cache, and written to it."""
OTHERS = ("SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "GUARDRAIL")


def claims(value: object) -> bool:
    """Return True if the value is an observation, a list of observations, or a trace with them."""
    return any(_is_observation(entry) for entry in _entries(value))


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:
    """Return the sessions in the file: one for each that it names, else for each trace, and those of its side requests.

    Raises:
        TranscriptError: The file contains no messages.
    """
    document, lines = source.document_or_lines()
    requests = []
    for line in lines if document is None else [Line(0, (document,), None)]:
        for value in line.values:
            entries = _entries(value)
            requests += [_logged(line.number or number, entry) for number, entry in enumerate(entries, 1)]
            if rest := text_size(value) - sum(map(text_size, entries)):
                reasons = ("describes the trace, whose requests are its generations",)
                requests.append(LoggedRequest(line.number or len(entries), {"": "." * rest}, reasons=reasons))
        requests += unread(line)
    return read_threads(NAME, source, sorted(requests, key=lambda request: request.time or 0.0), with_sidechains=with_sidechains)


def _entries(value: object) -> list[JsonObject]:
    """Return the observations in a value; the value itself if it holds none."""
    if isinstance(value, dict):
        held = objects_at(value, "observations") or objects_at(value, "data")
        if not any(map(_is_observation, held)):
            return [value]
        trace = object_at(value, "trace") or value
        session = {"sessionId": trace["sessionId"]} if text_at(trace, "sessionId") else {}
        return [{**session, **entry} for entry in held]
    members = value if isinstance(value, list) else [value]
    return [entry for member in members for entry in (_entries(member) if isinstance(member, dict) else [{"": member}])]


def _is_observation(entry: JsonObject) -> bool:
    has_start = "startTime" in entry or "start_time" in entry
    return has_start and bool(text_at(entry, "traceId", "trace_id")) and text_at(entry, "type") in (*REQUESTS, *OTHERS)


def _logged(number: int, entry: JsonObject) -> LoggedRequest:
    kind, conversation = text_at(entry, "type"), text_at(entry, "sessionId", "session_id")
    time = moment(entry.get("startTime", entry.get("start_time")))
    if kind not in REQUESTS or not _is_observation(entry):
        reason = "not a request to a model" if kind in OTHERS else f"unknown type {kind!r}"[:100]
        return LoggedRequest(number, entry, time=time, reasons=(reason,))
    sent, tools = _sent(_json(entry.get("input")))
    return LoggedRequest(
        number,
        entry,
        conversation or text_at(entry, "traceId", "trace_id"),
        bool(conversation),
        time,
        sent,
        _answered(_json(entry.get("output"))),
        _counts(entry),
        _model(entry),
        tools,
        () if sent else ("a request whose messages were not captured",),
    )


def _sent(value: object) -> tuple[list[JsonObject], object]:
    """Return the messages of an input and the definitions of tools in it. What is no list of messages is one message of the user."""
    if value in (None, "", [], {}):
        return [], None
    found = next(find_lists(value), None)
    if found is None or isinstance(found.messages, str):
        return [{"role": "user", "content": text_or_json(value)}], None
    context = read_request_context(found)
    system: list[JsonObject] = [{"role": "system", "content": context.system}] if context.system is not None else []
    return [*system, *(provider_form(message) for message in found.messages if isinstance(message, dict))], context.metadata.get("tools")


def _answered(value: object) -> list[JsonObject]:
    """Return the messages of an output. What has no known form is a text of the assistant."""
    if value in (None, "", [], {}):
        return []
    if isinstance(value, dict) and is_message(answer := {"role": "assistant", **provider_form(value)}):
        return [answer]
    messages = list(response_messages(value if isinstance(value, dict) else {"output": value}))
    return [{"role": "assistant", **provider_form(message)} for message in messages] or [_text(value)]


def _text(value: object) -> JsonObject:
    return {"role": "assistant", "content": text_or_json(value)}


def _counts(entry: JsonObject) -> Counts | None:
    """Return the reported tokens, or None if there are none."""
    details = _details(entry)
    sums = {kind: sum(count for name, count in details.items() if kind in name) for kind in ("input", "output")}
    read, written = (
        sum(count for name, count in details.items() if "input" in name and any(mark in name for mark in marks)) for marks in CACHED
    )
    if details.get("input") and details["input"] + details.get("output", 0) == details.get("total"):  # of which the others are parts
        sums = {kind: details.get(kind, 0) for kind in sums}
    return split_total(sums["input"], read, written, sums["output"]) if any(sums.values()) else None


def _details(entry: JsonObject) -> dict[str, int]:
    details = object_at(entry, "usageDetails") or object_at(entry, "usage_details") or object_at(entry, "usage")
    return {name: count_at(details, name) for name in details if not name.endswith("Cost")}


def _reasoning(entry: JsonObject, output: int) -> int | None:
    stated = [count for name, count in _details(entry).items() if "reasoning" in name]
    return min(sum(stated), output) if stated else None


def _cost(entry: JsonObject) -> object:
    details = object_at(entry, "costDetails") or object_at(entry, "cost_details")
    costs = details.get("total"), *(entry.get(name) for name in ("totalCost", "total_cost", "calculatedTotalCost"))
    return next(filter(None, costs), None)


def _model(entry: JsonObject) -> str:
    return text_at(entry, "model", "providedModelName", "provided_model_name")


def _json(value: object) -> object:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{", '"'):
        values, problem = parse(value)
        return values[0] if len(values) == 1 and problem in COMPLETE else value
    return value


class Requests:
    """An observation has the usage of its request, and its price, which Langfuse works out if nobody has stated it."""

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: Path of the export, in which each observation names itself.
        """

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the requests of a value."""
        for entry in _entries(value):
            counts = _counts(entry) if text_at(entry, "type") in REQUESTS and _is_observation(entry) else None
            if counts is not None:
                yield Request(
                    f"langfuse:{name}" if (name := text_at(entry, "id")) else "",
                    moment(entry.get("startTime", entry.get("start_time"))),
                    NAME,
                    _model(entry),
                    text_at(entry, "projectId", "project_id"),
                    text_at(entry, "sessionId", "session_id", "traceId", "trace_id"),
                    **amounts_of(counts),
                    reasoning=_reasoning(entry, counts.output_tokens),
                    cost=dollars(_cost(entry)),
                )
