"""Exports of OpenTelemetry's conventions for generative AI and of Langfuse. The samples are made up from their public documentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import FunctionCall, FunctionCallOutput, Session, Usage
from session.transcripts import read_account, read_transcript
from session.transcripts.record_feed import text_size
from session.transcripts.reported_requests import read_requests
from session.units import is_answer

Json = dict[str, Any]
SYSTEM: Json = {"role": "system", "parts": [{"type": "text", "content": "You are a helpful bot"}]}
QUESTION: Json = {"role": "user", "parts": [{"type": "text", "content": "Weather in Paris?"}]}
CALL: Json = {
    "role": "assistant",
    "parts": [
        {"type": "reasoning", "content": "I ask the tool."},
        {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": {"location": "Paris"}},
    ],
}
RESULT: Json = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "rainy, 57°F"}]}
ANSWER: Json = {"role": "assistant", "parts": [{"type": "text", "content": "It rains."}]}
TURNS = [([SYSTEM, QUESTION], CALL, (100, 0, 20)), ([SYSTEM, QUESTION, CALL, RESULT], ANSWER, (150, 90, 5))]
"""Of each request: its prompt, its answer, and tokens of the prompt, of those the cached ones, and of the answer."""


def attribute(key: str, value: object) -> Json:
    """Return an attribute in the form of OTLP."""
    name = {str: "stringValue", int: "intValue", bool: "boolValue"}.get(type(value))
    if name is None:
        return {"key": key, "value": {"stringValue": json.dumps(value)}}
    return {"key": key, "value": {name: str(value) if name == "intValue" else value}}


def span(number: int, attributes: Json, *, parent: str = "", trace: str = "t1", **fields: object) -> Json:
    pairs = [attribute(key, value) for key, value in attributes.items()]
    start = str(1_790_000_000_000_000_000 + number * 10**9)
    return {
        "traceId": trace,
        "spanId": f"s{number}",
        "parentSpanId": parent,
        "name": "chat m",
        "startTimeUnixNano": start,
        "attributes": pairs,
    } | fields


def batch(*spans: Json) -> Json:
    resource = {"attributes": [attribute("service.name", "shop")]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "openai"}, "spans": list(spans)}]}]}


def logs(*records: Json) -> Json:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": list(records)}]}]}


def usage(tokens: tuple[int, int, int]) -> Json:
    names = ("input_tokens", "cache_read.input_tokens", "output_tokens")
    return {f"gen_ai.usage.{name}": count for name, count in zip(names, tokens, strict=True)}


def request(number: int, sent: list[Json], answer: Json, tokens: tuple[int, int, int], **fields: Any) -> Json:
    messages = {"gen_ai.input.messages": sent, "gen_ai.output.messages": [{**answer, "finish_reason": "stop"}]}
    names = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4.1", "gen_ai.conversation.id": "conv"}
    return span(number, names | messages | usage(tokens), **fields)


ROOT = span(0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"} | usage((250, 90, 25)))
OTEL = [batch(request(number, *turn, parent="s0")) for number, turn in enumerate(TURNS, 1)] + [batch(ROOT)]


def openai(message: Json) -> Json:
    """Return a message of the conventions in OpenAI's form."""
    first = message["parts"][-1]
    if first["type"] == "tool_call":
        function = {"name": first["name"], "arguments": json.dumps(first["arguments"])}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": first["id"], "type": "function", "function": function}]}
    if first["type"] == "tool_call_response":
        return {"role": "tool", "tool_call_id": first["id"], "content": first["response"]}
    return {"role": message["role"], "content": first["content"]}


def generation(number: int, sent: list[Json], answer: Json, tokens: tuple[int, int, int], **fields: Any) -> Json:
    total, cached, output = tokens
    details = {"input": total - cached, "input_cached_tokens": cached, "output": output, "total": total + output}
    return {
        "id": f"o{number}",
        "traceId": "t1",
        "type": "GENERATION",
        "startTime": f"2026-09-01T10:00:0{number}.000Z",
        "model": "gpt-4.1",
        "input": {"messages": list(map(openai, sent))},
        "output": openai(answer),
        "usageDetails": details,
        "costDetails": {"total": 0.001 * number},
    } | fields


LANGFUSE = [generation(number, *turn, sessionId="conv") for number, turn in enumerate(TURNS, 1)]


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def total(usage: Usage) -> int:
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens + usage.output_tokens


def shape(session: Session) -> list[str]:
    """Return the names of the items, and the tokens that the answers report."""
    return [f"{type(item).__name__}{f' {total(item.usage)}' if is_answer(item) and item.usage else ''}" for item in session.items]


def old_events(in_span: bool) -> list[Json]:
    """Return the requests with each message as an event, in the span or as a log record that names it."""
    records = []
    for number, (sent, answer, tokens) in enumerate(TURNS, 1):
        bodies = [(f"gen_ai.{message['role']}.message", openai(message)) for message in sent]
        bodies = [(name, body | {"id": body["tool_call_id"]} if "tool" in name else body) for name, body in bodies]
        bodies.append(("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": openai(answer)}))
        names = {"gen_ai.request.model": "gpt-4.1", "session.id": "conv"} | usage(tokens)
        if in_span:
            events = [{"name": name, "attributes": [attribute("gen_ai.event.content", body)]} for name, body in bodies]
            records.append(batch(span(number, names, events=events)))
            continue
        records.append(batch(span(number, names)))
        ids = {"traceId": "t1", "spanId": f"s{number}", "timeUnixNano": "1790000009000000000"}
        records.append(logs(*({**ids, "eventName": name, "body": any_value(body)} for name, body in bodies)))
    return records


def kvlist(value: Json) -> Json:
    return {"values": [{"key": key, "value": any_value(member)} for key, member in value.items()]}


def any_value(value: object) -> Json:
    if isinstance(value, dict):
        return {"kvlistValue": kvlist(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": list(map(any_value, value))}}
    return {} if value is None else {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


SNAKE = {
    "traceId": "trace_id",
    "startTime": "start_time",
    "model": "provided_model_name",
    "usageDetails": "usage_details",
    "sessionId": "session_id",
}
ROWS = [
    {SNAKE.get(name, name): json.dumps(value) if name in ("input", "output") else value for name, value in row.items()} for row in LANGFUSE
]
FORMS: dict[str, list[object]] = {
    "otel": list(OTEL),
    "otel in one batch": [batch(ROOT, *(request(number, *turn, parent="s0") for number, turn in enumerate(TURNS, 1)))],
    "otel with events of spans": list(old_events(in_span=True)),
    "langfuse": list(LANGFUSE),
    "langfuse, rows of a blob export": list(ROWS),
    "langfuse, a trace": [{"id": "t1", "sessionId": "conv", "observations": [generation(n, *turn) for n, turn in enumerate(TURNS, 1)]}],
    "langfuse, a page of the API": [{"data": LANGFUSE[::-1], "meta": {"cursor": None}}],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("as_document", [False, True], ids=["lines", "document"])
def test_each_form_gives_one_session_and_each_request_once(form: str, as_document: bool, tmp_path: Path) -> None:
    records = FORMS[form]
    path = tmp_path / ("log.json" if as_document else "log.jsonl")
    path.write_text(json.dumps(records) if as_document else "".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    account = read_account(path)
    session = account.sessions[0]
    thoughts = ["Reasoning 120", "FunctionCall"] if form in ("otel", "otel in one batch") else ["FunctionCall 120"]
    assert (len(account.sessions), session.id, session.metadata["warnings"]) == (1, "conv", [])
    assert shape(session) == ["Message", "Message", *thoughts, "FunctionCallOutput", "Message 155"]
    [call] = [item for item in session.items if isinstance(item, FunctionCall)]
    [output] = [item for item in session.items if isinstance(item, FunctionCallOutput)]
    assert (call.name, json.loads(call.arguments), output.call_id) == ("get_weather", {"location": "Paris"}, call.call_id)
    requests = sorted(read_requests(path).requests, key=lambda one: one.time or 0)
    amounts = [(one.session, one.model, one.input_tokens, one.cache_read, one.output_tokens) for one in requests]
    assert amounts == [("conv", "gpt-4.1", 100, 0, 20), ("conv", "gpt-4.1", 60, 90, 5)]


def test_messages_in_log_records_belong_to_the_span_that_they_name(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", *old_events(in_span=False))
    assert shape(read_transcript(path)) == ["Message", "Message", "FunctionCall 120", "FunctionCallOutput", "Message 155"]
    assert [one.total for one in read_requests(path).requests] == [120, 155]


def test_spans_around_a_request_do_not_count_it_again(tmp_path: Path) -> None:
    inner = request(2, *TURNS[0], parent="s1")
    silent = span(3, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": TURNS[0][0]}, parent="s2")
    path = write(tmp_path / "log.jsonl", batch(inner), batch(silent, request(1, *TURNS[0], parent="s0"), ROOT))
    assert [one.total for one in read_requests(path).requests] == [120]
    assert len(read_account(path).sessions) == 1
    agent = span(1, {"gen_ai.operation.name": "invoke_agent"} | usage((7, 0, 1)))
    assert [one.total for one in read_requests(write(tmp_path / "b.jsonl", batch(agent))).requests] == [8]


def test_turns_in_traces_of_their_own_go_on_in_one_session(tmp_path: Path) -> None:
    spans = [request(number, *turn, trace=f"t{number}") for number, turn in enumerate(TURNS, 1)]
    for one in spans:
        one["attributes"] = [pair for pair in one["attributes"] if pair["key"] != "gen_ai.conversation.id"]
    account = read_account(write(tmp_path / "log.jsonl", batch(*spans)))
    assert [(session.id, len(session.items)) for session in account.sessions] == [("t1", 6)]


def test_a_side_request_is_a_session_of_its_own(tmp_path: Path) -> None:
    title = request(3, [{"role": "user", "parts": [{"type": "text", "content": "A title, please."}]}], ANSWER, (9, 0, 1))
    account = read_account(write(tmp_path / "log.jsonl", *OTEL, batch(title)))
    assert (account.main_count, [session.id for session in account.sessions]) == (1, ["conv", "conv:1"])


def test_what_may_hold_a_prompt_and_is_not_read_is_unknown(tmp_path: Path) -> None:
    odd = request(1, *TURNS[0])
    odd["attributes"].append(attribute("gen_ai.prompt.0.content", "What?"))
    [line] = read_account(write(tmp_path / "log.jsonl", batch(odd))).lines
    assert (line.unknown_bytes, line.reason) == (
        text_size(odd),
        "unknown attribute 'gen_ai.prompt.0.content'; describes where the spans come from",
    )


@pytest.mark.parametrize(
    ("details", "amounts"),
    [
        ({"input": 10, "output": 2}, (10, 0, 0, 2, None)),
        ({"input": 0, "output": 4, "input_cached_tokens": 30, "input_cache_creation": 10, "total": 44}, (0, 30, 10, 4, None)),
        ({"input": 40, "output": 4, "input_cached_tokens": 30, "output_reasoning_tokens": 3, "total": 44}, (10, 30, 0, 4, 3)),
        ({"input": 40, "output": 4, "output_reasoning_tokens": 3, "total": 47}, (40, 0, 0, 7, 3)),
    ],
)
def test_types_of_langfuse_s_usage_exclude_one_another_unless_the_total_says_otherwise(
    details: dict[str, int], amounts: tuple[int | None, ...], tmp_path: Path
) -> None:
    [one] = read_requests(write(tmp_path / "log.jsonl", LANGFUSE[0] | {"usageDetails": details})).requests
    assert (one.input_tokens, one.cache_read, one.cache_write, one.output_tokens, one.reasoning) == amounts


PARTS = st.sampled_from(
    [
        *({"type": "text", "content": text} for text in ("a", "b", "")),
        {"type": "reasoning", "content": "hm"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "QUJD"},
        {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": "QUJD"},
        {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"},
        {"type": "file", "modality": "document", "file_id": "f"},
        {"type": "compaction", "content": "Summary."},
        {"type": "server_tool_call", "id": "w", "name": "web_search", "server_tool_call": {"type": "web_search", "query": "q"}},
        {"type": "server_tool_call_response", "id": "w", "server_tool_call_response": {"type": "web_search", "hits": 1}},
        {"type": "telepathy"},
        {"type": 7},
        None,
    ]
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "oracle"]), "parts": st.lists(PARTS, max_size=3)}), max_size=5
)


@given(messages=MESSAGES, ends=st.lists(st.integers(1, 5), max_size=4))
def test_whatever_the_messages_are_a_prompt_that_goes_on_is_read_once(
    messages: list[Json], ends: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Requests with growing prompts give the items of the last one."""
    folder = tmp_path_factory.mktemp("logs")
    sizes = sorted({min(end, len(messages)) for end in ends} | {len(messages)})
    whole = batch(span(9, {"gen_ai.input.messages": [QUESTION, *messages]}))
    growing = (span(number, {"gen_ai.input.messages": [QUESTION, *messages[:size]]}) for number, size in enumerate(sizes))
    once, often = (read_transcript(write(folder / f"{name}.jsonl", one)) for name, one in (("a", whole), ("b", batch(*growing))))
    assert [type(item) for item in often.items] == [type(item) for item in once.items]
