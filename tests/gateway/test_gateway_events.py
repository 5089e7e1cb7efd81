"""Streams with recalls, cut into pieces at any byte."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_window.gateway.anthropic_recall import AnthropicJoinedAnswer
from context_window.gateway.chat_recall import ChatJoinedAnswer
from context_window.gateway.events import StreamEventReader, event_of
from context_window.gateway.google_recall import GoogleJoinedAnswer
from context_window.gateway.joined_answer import JoinedAnswer
from context_window.gateway.relay import json_of_refusal
from context_window.gateway.responses_recall import ResponsesJoinedAnswer
from tests.support.stubs.answers import Call, Say, Think
from tests.support.stubs.anthropic import AnthropicStub
from tests.support.stubs.gemini import GeminiStub
from tests.support.stubs.openai_chat import OpenAIChatStub
from tests.support.stubs.openai_responses import OpenAIResponsesStub

Json = dict[str, Any]

block = st.sampled_from(
    [
        *(Think("Hmm. Ä é."), Think("", hidden=True), Say("Some text that is longer than one piece of the stream is."), Say("Short.")),
        *(Call("read", {"path": "ä"}), Call("recall", {"id": "m1"}), Call("recall", {"id": "m2"})),
    ]
)
rounds = st.lists(
    st.tuples(st.lists(block, max_size=5), block.filter(lambda last: not isinstance(last, Think))).map(lambda pair: [*pair[0], pair[1]]),
    min_size=1,
    max_size=3,
)

USER: Json = {"role": "user", "content": "Hi"}
FORMATS = [
    pytest.param(AnthropicStub, AnthropicJoinedAnswer, "/v1/messages", {"model": "m", "max_tokens": 9, "messages": [USER]}, id="anthropic"),
    pytest.param(OpenAIChatStub, ChatJoinedAnswer, "/v1/chat/completions", {"model": "m", "messages": [USER]}, id="chat"),
    pytest.param(
        OpenAIResponsesStub, ResponsesJoinedAnswer, "/v1/responses", {"model": "m", "input": [USER], "store": False}, id="responses"
    ),
    pytest.param(
        GeminiStub,
        GoogleJoinedAnswer,
        "/v1beta/models/gemini-3:streamGenerateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        id="google",
    ),
]
HEADERS = {
    "x-api-key": "k",
    "authorization": "Bearer k",
    "x-goog-api-key": "k",
    "anthropic-version": "1",
    "content-type": "application/json",
}


@pytest.mark.no_cover
@pytest.mark.parametrize(("stub_type", "joined_type", "path", "body"), FORMATS)
@settings(max_examples=max(1, settings().max_examples // 2))
@given(said=rounds, data=st.data(), line_end=st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_a_stream_says_the_same_as_the_whole_answer_wherever_it_is_cut(
    stub_type: Any, joined_type: type[JoinedAnswer], path: str, body: Json, said: list[list[Any]], data: st.DataObject, line_end: bytes
) -> None:
    """The client's bytes do not depend on the pieces, they say the same as the whole answer, and bytes without recalls are the
    upstream's own. The provider takes the next round's request, and the client's next one with the answer as it saw it."""
    stub = stub_type(lambda request: said[min(json.dumps(request).count('"recalled"'), len(said) - 1)])
    streams, whole = _upstream(stub, joined_type, path, body, len(said))
    streams = [stream.replace(b"\r\n", b"\n").replace(b"\n", line_end) for stream in streams]
    size = data.draw(st.integers(1, 60))
    cut = [[stream[at : at + size] for at in range(0, len(stream), size)] for stream in streams]
    shown = _shown(joined_type(), cut)
    assert shown == _shown(joined_type(), [[stream] for stream in streams])
    if not whole.is_changed:
        assert shown == streams[0]
        return
    assert b'"recall"' not in shown
    reader, parser = joined_type(), StreamEventReader()
    events = [event.data for event in [*parser.events(shown), *parser.end()] if event.data is not None]
    assert _said(reader, reader.whole(events)) == _said(reader, whole.whole_answer())
    raw = json.dumps(_next_request(body, whole.whole_answer())).encode()
    assert stub.respond(path, HEADERS, raw)[0] == 200, stub.respond(path, HEADERS, raw)
    numbers = [event["sequence_number"] for event in events if "sequence_number" in event]
    assert numbers == list(range(len(numbers)))


def test_blank_lines_are_no_events() -> None:
    """Two million of them were as many steps on the event loop."""
    reader = StreamEventReader()
    events = [event.raw for event in [*reader.events(b"data: 1\n" + b"\n" * 2_000_000), *reader.end()]]
    assert len(events) == 1


def test_reasoning_after_a_hidden_recall_is_hidden_too() -> None:
    """It could not be sent back, since the item after it has another id."""
    thought = Think("Hmm. Ä é.")
    stub = OpenAIResponsesStub(lambda _: [thought, Call("recall", {"id": "m1"}), thought, Say("Short.")])
    body: Json = {"model": "m", "input": [USER], "store": False}
    streams, whole = _upstream(stub, ResponsesJoinedAnswer, "/v1/responses", body, 1)
    answer = whole.whole_answer()
    assert [item["type"] for item in answer["output"]] == ["message"]
    assert b'"reasoning"' not in _shown(ResponsesJoinedAnswer(), [streams])
    assert stub.respond("/v1/responses", HEADERS, json.dumps(_next_request(body, answer)).encode())[0] == 200


NAMES = st.sampled_from(
    [
        "type",
        "index",
        "delta",
        "message",
        "content",
        "content_block",
        "choices",
        "tool_calls",
        "function",
        "name",
        "finish_reason",
        "usage",
        "item",
        "output_index",
        "response",
        "output",
        "candidates",
        "parts",
        "functionCall",
    ]
)
VALUE = st.recursive(
    st.none() | st.integers(0, 2) | st.sampled_from(["", "recall", "read", "tool_use", "stop", "function_call"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(("stub_type", "joined_type", "path", "body"), FORMATS)
@given(data=st.data())
def test_no_garbage_is_a_fault_of_the_gateway(
    stub_type: Any, joined_type: type[JoinedAnswer], path: str, body: Json, data: st.DataObject
) -> None:
    """Events with wrong values end the answer. They raise nothing, and neither does a whole answer with them."""
    stub = stub_type(lambda _: [Say("Look."), Call("recall", {"id": "m1"})])
    streams, whole = _upstream(stub, joined_type, path, body, 1)
    joined = joined_type()
    for _ in range(2):
        events = [*StreamEventReader().events(streams[0])]
        spoilt = data.draw(st.integers(0, len(events) - 1))
        for number, event in enumerate(events):
            wrong = {data.draw(NAMES): data.draw(VALUE)} if number == spoilt else {}
            list(joined.read(event_of({**(event.data or {}), **wrong}, event.name)))
        joined.finish_round()
        if not (calls := joined.recalls):
            break
        joined.next_round({**body}, [("text", False) for _ in calls])
    list(joined.end())
    fresh = joined_type()
    fresh.add({**whole._answers[0], data.draw(NAMES): data.draw(VALUE)})
    if not fresh.has_failed:
        assert isinstance(fresh.recalls, list)
        assert isinstance(fresh.whole_answer(), dict)


def _upstream(stub: Any, joined_type: type[JoinedAnswer], path: str, body: Json, rounds: int) -> tuple[list[bytes], JoinedAnswer]:
    """Return the streams of the rounds and the answer made of their whole answers."""
    whole, streams = joined_type(), []
    for number in range(rounds):
        raw = json.dumps({**body, "stream": True} if "contents" not in body else body).encode()
        status, answer = stub.respond(path, HEADERS, raw)
        assert status == 200, answer
        streams.append(stub.written(raw, status, answer)[1])
        whole.add(answer)
        if not (calls := whole.recalls) or number == rounds - 1:
            break
        body = whole.next_round(body, [("recalled", False) for _ in calls])
    return streams, whole


def _shown(joined: JoinedAnswer, streams: Sequence[Sequence[bytes]]) -> bytes:
    """Return the bytes for the client."""
    shown = b""
    for number, pieces in enumerate(streams):
        reader = StreamEventReader()
        for piece in pieces:
            shown += b"".join(event.raw for read in reader.events(piece) for event in joined.read(read))
        shown += b"".join(event.raw for read in reader.end() for event in joined.read(read))
        joined.finish_round()
        if number < len(streams) - 1:
            joined.next_round({"messages": [], "input": [], "contents": []}, [("recalled", False) for _ in joined.recalls])
    return shown + b"".join(event.raw for event in joined.end())


def _said(joined: JoinedAnswer, answer: Json | None) -> Any:
    """Return what an answer says, without what the stubs' streams leave out."""
    assert answer is not None
    if "content" in answer:
        return [answer["id"], answer["content"], answer["stop_reason"], {k: v for k, v in answer["usage"].items() if v is not None}]
    if "choices" in answer:
        message = answer["choices"][0]["message"]
        return [answer["id"], message.get("content"), message.get("tool_calls"), answer["choices"][0]["finish_reason"]]
    if "output" in answer:
        return [answer["id"], answer["output"], answer["status"], answer["usage"]]
    content = answer["candidates"][0]["content"]["parts"]
    text = "".join(part["text"] for part in content if "text" in part and not part.get("thought"))
    calls = [part for part in content if "functionCall" in part]
    return [answer["responseId"], text, calls, answer["candidates"][0]["finishReason"], answer["usageMetadata"]]


def _next_request(body: Json, answer: Json) -> Json:
    """Return the request with the answer and the results of the client's tools."""
    if "content" in answer:
        calls = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id in calls] or "Go on."
        messages: list[Json] = [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": results}]
        return {**body, "messages": [*body["messages"], *messages]}
    if "choices" in answer:
        message = answer["choices"][0]["message"]
        outputs = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in message.get("tool_calls", [])]
        return {**body, "messages": [*body["messages"], message, *(outputs or [USER])]}
    if "output" in answer:
        ids = [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]
        outputs = [{"type": "function_call_output", "call_id": id, "output": "ok"} for id in ids]
        return {**body, "input": [*body["input"], *answer["output"], *(outputs or [USER])]}
    content = answer["candidates"][0]["content"]
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    parts: list[Json] = [{"functionResponse": {"id": call["id"], "name": call["name"], "response": {}}} for call in calls] or [
        {"text": "Go on."}
    ]
    return {**body, "contents": [*body["contents"], content, {"role": "user", "parts": parts}]}


def test_an_event_that_is_too_large_is_passed_on_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte, whatever the pieces; the ones after it are read again."""
    monkeypatch.setattr("context_window.gateway.events.LARGEST_EVENT", 1_000)
    reader = StreamEventReader()
    stream = b'data: {"a": "' + b"x" * 5_000 + b'"}\n\ndata: {"b": 1}\n\n'
    events = [event for start in range(0, len(stream), 70) for event in reader.events(stream[start : start + 70])]
    assert b"".join(event.raw for event in [*events, *reader.end()]) == stream
    assert [event.data for event in events if event.data is not None] == [{"b": 1}]


def test_a_number_that_is_none_is_not_passed_on_as_infinity() -> None:
    (event,) = StreamEventReader().events(b'data: {"a": 1E400}\n\n')
    assert (event.data, event.raw) == (None, b'data: {"a": 1E400}\n\n')


@pytest.mark.parametrize(
    ("body", "encoding", "value"),
    [
        (b'{"a": 1}', b"identity", {"a": 1}),
        (gzip.compress(b'{"a": 1}'), b"gzip", {"a": 1}),
        (zlib.compress(b'{"a": 1}'), b"deflate", {"a": 1}),
        (gzip.compress(gzip.compress(b'{"a": 1}')), b"gzip, gzip", None),
        (gzip.compress(b'{"a": "' + b"x" * 10**7 + b'"}'), b"gzip", None),
        (b'{"a": 1}', b"br", None),
        (b"no gzip", b"gzip", None),
        (b"[" * 90_000, b"identity", None),
    ],
    ids=["plain", "gzip", "deflate", "gzip twice", "gzip of much", "brotli", "no gzip", "deep"],
)
def test_a_refusal_is_unpacked_once_and_up_to_a_size(body: bytes, encoding: bytes, value: object) -> None:
    """One that is packed twice, or is large when unpacked, keeps nobody waiting: it reaches the client unread."""
    assert json_of_refusal(body, encoding) == value


@pytest.mark.parametrize("missing", range(6))
def test_a_stream_that_lacks_an_event_reaches_the_client_as_it_is(missing: int) -> None:
    """Nothing is swallowed while nothing is hidden."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    stream = b"".join(event_of(data, str(data["type"])).raw for number, data in enumerate(events) if number != missing)
    joined, reader = AnthropicJoinedAnswer(), StreamEventReader()
    sent = b"".join(each.raw for event in reader.events(stream) for each in joined.read(event))
    joined.finish_round()
    assert sent + b"".join(event.raw for event in joined.end()) == stream


MANY = 2_000
DELTAS: dict[str, tuple[type[JoinedAnswer], Callable[[int], Json]]] = {
    "text": (
        AnthropicJoinedAnswer,
        lambda _: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 900}},
    ),
    "input": (
        AnthropicJoinedAnswer,
        lambda _: {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "1" * 900}},
    ),
    "citations": (
        AnthropicJoinedAnswer,
        lambda number: {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"n": number}}},
    ),
    "chat": (ChatJoinedAnswer, lambda _: {"choices": [{"delta": {"content": "x" * 900}}]}),
    "arguments": (
        ChatJoinedAnswer,
        lambda _: {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "1" * 900}}]}}]},
    ),
    "parts": (GoogleJoinedAnswer, lambda _: {"candidates": [{"content": {"parts": [{"text": "x" * 900}]}}]}),
}
FIRST: list[Json] = [
    {"type": "message_start", "message": {"id": "m", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": None}},
]
LAST: Json = {"choices": [{"finish_reason": "stop"}], "candidates": [{"finishReason": "STOP"}], "type": "message_stop"}


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", DELTAS)
def test_the_time_to_join_a_stream_grows_with_its_size(kind: str) -> None:
    """An answer of 8 MB in small pieces kept everybody waiting for half a minute: each piece copied the text before it."""
    joined_type, delta = DELTAS[kind]

    def seconds(count: int) -> float:
        events = [*FIRST, *map(delta, range(count)), LAST]
        begun = time.process_time()
        answer = joined_type().whole(events)
        assert answer is not None
        return time.process_time() - begun

    assert any(seconds(4 * MANY) < 10 * seconds(MANY) + 0.02 for _ in range(3))


def test_a_block_keeps_what_came_between_its_pieces() -> None:
    deltas: list[Json] = [{"type": "text_delta", "text": "a"}, {"type": "odd", "text": "b", "x": 1}, {"type": "text_delta", "text": "c"}]
    events = [*FIRST, *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas), LAST]
    answer = AnthropicJoinedAnswer().whole(events)
    assert answer is not None
    assert answer["content"] == [{"type": "text", "text": "bc", "citations": None, "x": 1}]


def test_an_event_of_many_lines_is_passed_on_unread() -> None:
    """16 million of them were as many steps on the event loop."""
    reader = StreamEventReader()
    stream = b"data: 1\n" * 3_000 + b'\ndata: {"b": 1}\n\n'
    events = [*reader.events(stream), *reader.end()]
    assert [event.data for event in events] == [None, {"b": 1}]
    assert b"".join(event.raw for event in events) == stream


def test_an_answer_that_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reaches the client byte for byte, and memory does not grow with it."""
    monkeypatch.setattr("context_window.gateway.joined_answer.LARGEST_ANSWER", 10_000)
    for joined_type, delta in DELTAS.values():
        joined, stream = joined_type(), b"".join(event_of(data).raw for data in [*FIRST, *map(delta, range(100)), LAST])
        assert _shown(joined, [[stream]]) == stream
        assert joined.is_too_large
        assert not joined._events
        assert not joined.recalls
