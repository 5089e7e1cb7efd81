"""Answers go into the log as the provider sent them, and the results of several calls at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings

from context_window import ContextWindow, ContextWindowManager
from session import DuplicateItemError, FormatError, FunctionCall, FunctionCallOutput, Image, Message, Session, Text, Usage
from session.items import Item, new_id
from session.providers.additions import CLOSING, INTERRUPTED
from tests.contracts.wires import Anthropic, BindingAnthropic, Google, OpenAIChat, OpenAIResponses, Wire
from tests.support.counting import Letters
from tests.support.pictures import png
from tests.support.strategies import sessions
from tests.support.stubs import Call, Say, Script, Think, in_order

WIRES = [BindingAnthropic, OpenAIChat, OpenAIResponses, Google]


def working() -> Script:
    """A model that makes two parallel calls, then one more, then answers."""
    return in_order(
        [Think("Both."), Say("I look at both."), Call("read", {"path": "a"}), Call("read", {"path": "b"})],
        [Think("One more."), Call("read", {"path": "c"})],
        [Think("Enough."), Say("They are alike. " * 9)],
    )


def whole_response(wire: Wire, client: Any, payload: Any) -> Any:
    """Return the response of the vendor's client to a payload, with its usage."""
    if isinstance(wire, Anthropic):
        return client.messages.create(**wire.request(payload))
    if isinstance(wire, OpenAIChat):
        return client.chat.completions.create(**wire.request(payload))
    if isinstance(wire, OpenAIResponses):
        return client.responses.create(**wire.request(payload))
    config = None if payload.system is None else {"system_instruction": payload.system}
    return client.models.generate_content(model="gemini-3-pro", contents=payload.contents, config=config)


def as_json(wire: Wire, client: Any, payload: Any) -> Any:
    return whole_response(wire, client, payload).model_dump(mode="json")


def streamed_response(wire: Wire, client: Any, payload: Any) -> Any:
    """Return all pieces of a stream."""
    if isinstance(wire, Anthropic):
        return list(client.messages.create(**wire.request(payload), stream=True))
    if isinstance(wire, OpenAIChat):
        return list(client.chat.completions.create(**wire.request(payload), stream=True, stream_options={"include_usage": True}))
    if isinstance(wire, OpenAIResponses):
        return list(client.responses.create(**wire.request(payload), stream=True))
    config = None if payload.system is None else {"system_instruction": payload.system}
    return list(client.models.generate_content_stream(model="gemini-3-pro", contents=payload.contents, config=config))


def final_object(wire: Wire, client: Any, payload: Any) -> Any:
    """Return the final object of the client's own stream helper."""
    if isinstance(wire, Anthropic):
        with client.messages.stream(**wire.request(payload)) as stream:
            return stream.get_final_message()
    if isinstance(wire, OpenAIChat):
        with client.chat.completions.stream(**wire.request(payload), stream_options={"include_usage": True}) as stream:
            return stream.get_final_completion()
    if isinstance(wire, OpenAIResponses):
        with client.responses.stream(**wire.request(payload)) as stream:
            return stream.get_final_response()
    return streamed_response(wire, client, payload)


def helper_events(wire: Wire, client: Any, payload: Any) -> Any:
    """Return all events of Anthropic's stream helper, which repeats texts in events of its own."""
    if not isinstance(wire, Anthropic):
        return final_object(wire, client, payload)
    with client.messages.stream(**wire.request(payload)) as stream:
        return list(stream)


ASK = [whole_response, as_json, streamed_response, final_object, helper_events]


def texts(session: Session) -> list[tuple[str, str]]:
    return [(item.type, str(getattr(item, "text", getattr(item, "arguments", "")))) for item in session.items]


@pytest.mark.parametrize("ask", ASK, ids=lambda ask: ask.__name__)
@pytest.mark.parametrize("kind", WIRES, ids=lambda kind: kind.name)
def test_a_conversation_of_answers_and_results_is_valid_and_complete(kind: type[Wire], ask: Any) -> None:
    """Reasoning, signatures, ids and usage go in with the answer: the strict provider takes every later request.

    On the old code the second answer raised DuplicateItemError: 'm0'.
    """
    wire, session = kind(), Session()
    session.add_message("user", "Compare a and b.")
    with wire.stub(working()) as stub, wire.client(stub) as client:
        for _ in range(3):
            items = session.add_response(ask(wire, client, wire.sent(session)), agent_id="reader")
            assert all(item.agent_id == "reader" for item in items)
            assert isinstance(items[0].usage, Usage)
            assert items[0].usage.total_input > 0
            assert items[0].usage.output_tokens > 0
            assert items[0].extra["model"]
            assert [item.usage for item in items[1:]] == [None] * len(items[1:])
            session.add_tool_results({item.call_id: f"text of {item.arguments}" for item in items if isinstance(item, FunctionCall)})
    assert len({item.id for item in session.items}) == len(session.items)
    spoken = [text for item_type, text in texts(session) if item_type == "message"]
    assert [text.strip() for text in spoken if text] == ["Compare a and b.", "I look at both.", ("They are alike. " * 9).strip()]
    assert [item.type for item in session.items].count("function_call") == 3
    outputs = [item for item in session.items if isinstance(item, FunctionCallOutput)]
    assert [(output.name, output.agent_id) for output in outputs] == [("read", "reader")] * 3
    if not isinstance(wire, OpenAIChat):  # Chat Completions shows no reasoning
        assert [item.type for item in session.items].count("reasoning") == 3


USAGES: list[tuple[dict[str, Any], Usage]] = [
    (
        {"role": "assistant", "content": [{"type": "text", "text": "x"}], "usage": {"input_tokens": 400, "output_tokens": 9}},
        Usage(400, output_tokens=9),
    ),
    (
        {
            "choices": [{"message": {"role": "assistant", "content": "x"}}],
            "usage": {"prompt_tokens": 400, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 100}},
        },
        Usage(300, cache_read_tokens=100, output_tokens=9),
    ),
    (
        {
            "output": [{"type": "message", "role": "assistant", "content": "x"}],
            "usage": {"input_tokens": 400, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 100}},
        },
        Usage(300, cache_read_tokens=100, output_tokens=9),
    ),
    (
        {
            "candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}}],
            "usageMetadata": {"promptTokenCount": 400, "candidatesTokenCount": 4, "thoughtsTokenCount": 5},
        },
        Usage(400, output_tokens=9),
    ),
]


@pytest.mark.parametrize(("response", "usage"), USAGES, ids=[wire.name for wire in WIRES])
def test_usage_and_notes_reach_the_manager(response: dict[str, Any], usage: Usage) -> None:
    """The first item carries the usage, so the next total starts from the report."""
    session = Session([Message("user", "x" * 300)])
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=9_000))
    manager.process_session(session)
    [item] = session.add_response(response, extra=manager.answer_notes(session))
    assert item.usage == usage
    assert "counted" in item.extra
    manager.process_session(session)
    assert manager.get_token_usage()["total"] >= 400


def test_two_answers_in_a_row_are_two_responses() -> None:
    session = Session([Message("user", "Hi")])
    session.add_response({"role": "assistant", "content": "One."})
    second = session.add_response({"role": "assistant", "content": "Two."})
    assert session.response_breaks == {second[0].id}


def test_an_answer_that_goes_on_after_a_pause_is_one_response() -> None:
    session = Session([Message("user", "Search.")])
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    session.add_response({"role": "assistant", "content": [call], "stop_reason": "pause_turn"})
    session.add_response({"role": "assistant", "content": [{"type": "text", "text": "Found."}]})
    assert session.response_breaks == frozenset()


def test_an_empty_answer_adds_nothing() -> None:
    session = Session()
    assert session.add_response({"candidates": [], "prompt_feedback": {"block_reason": "SAFETY"}}) == []
    assert session.add_response({"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}) == []
    assert list(session.items) == []


@pytest.mark.parametrize(
    "response",
    [None, 7, "text", [], {}, {"role": "user", "content": "x"}, [{"role": "assistant"}], {"choices": []}, {"choices": [7]}, {"output": 5}],
    ids=repr,
)
def test_what_is_no_response_is_refused_and_nothing_is_appended(response: object) -> None:
    session = Session()
    with pytest.raises(FormatError):
        session.add_response(response)
    assert list(session.items) == []


START = {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}}
CALL = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": {}}}
STOP = [{"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]


@pytest.mark.parametrize("events", [[{"type": "response.created", "response": {"output": []}}], [START, CALL], [CALL, *STOP]])
def test_a_stream_that_is_not_complete_is_refused(events: list[Any]) -> None:
    with pytest.raises(FormatError, match="ended before"):
        Session().add_response(events)


@pytest.mark.parametrize(("written", "arguments"), [("", "{}"), ('{"a": [1, "é"]}', '{"a": [1, "é"]}'), ('{"a', '{"arguments": "{\\"a"}')])
def test_streamed_arguments_are_an_object_even_if_the_stream_broke_off_in_them(written: str, arguments: str) -> None:
    pieces = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}} for piece in written
    ]
    [call] = Session().add_response([START, CALL, *pieces, *STOP])
    assert isinstance(call, FunctionCall)
    assert call.arguments == arguments
    assert call.usage == Usage(9, output_tokens=5)


async def _coroutine() -> None: ...


async def _chunks() -> AsyncIterator[object]:
    yield START


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (_coroutine, "await"),
        (_chunks, r"\[chunk async for chunk in stream\]"),
        (lambda: iter([START]), r"list\(stream\)"),
        (lambda: nullcontext(START), "get_final_message"),
    ],
    ids=["coroutine", "async stream", "iterator", "manager"],
)
def test_a_stream_that_was_not_read_is_refused_with_what_to_pass(make: Callable[[], object], remedy: str) -> None:
    with pytest.raises(FormatError, match=remedy):
        Session().add_response(make())


def test_streams_of_the_clients_are_refused_with_what_to_pass() -> None:
    wire, session = Anthropic(), Session([Message("user", "Hi")])
    with wire.stub(in_order([Say("Hi")])) as stub, wire.client(stub) as client:
        request = wire.request(wire.sent(session))
        manager = client.messages.stream(**request)
        with pytest.raises(FormatError, match="get_final_message"):
            session.add_response(manager)
        with client.messages.create(**request, stream=True) as stream, pytest.raises(FormatError, match=r"list\(stream\)"):
            session.add_response(stream)


def test_the_clients_own_parsing_is_not_stored() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "parsed_arguments": {"a": 1}}
    text = {"type": "output_text", "text": "{}", "annotations": [], "parsed": {}}
    message = {"type": "message", "role": "assistant", "content": [text]}
    items = Session().add_response({"object": "response", "output": [message, call]})
    assert "parsed" not in repr(items)


def test_repeated_and_missing_call_ids_become_unique() -> None:
    calls = [{"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}}] * 2
    items = Session().add_response({"choices": [{"message": {"role": "assistant", "tool_calls": calls}, "finish_reason": "tool_calls"}]})
    ids = [item.call_id for item in items if isinstance(item, FunctionCall)]
    assert len(set(ids)) == 2
    assert all(ids)


# Results


def session_with_calls(*call_ids: str) -> Session:
    return Session([Message("user", "Go."), *(FunctionCall(f"tool_{call_id}", "{}", call_id, agent_id="a") for call_id in call_ids)])


def test_results_by_call_id() -> None:
    picture = Image(png(2, 2))
    session = session_with_calls(*"abcdef")
    outputs = session.add_tool_results(
        {"b": "text", "a": {"size": [7, None]}, "c": OSError("disk full"), "d": None, "e": ["look:", picture], "f": ["x", "y"]}
    )
    assert [(output.name, output.call_id, output.is_error, output.agent_id) for output in outputs] == [
        (f"tool_{call_id}", call_id, call_id == "c", "a") for call_id in "bacdef"
    ]
    assert [output.output for output in outputs] == [
        (Text("text"),),
        (Text('{"size": [7, null]}'),),
        (Text("OSError: disk full"),),
        (),
        (Text("look:"), picture),
        (Text('["x", "y"]'),),
    ]


@pytest.mark.parametrize(
    "results",
    [
        [{"type": "tool_result", "tool_use_id": "a", "content": "1"}, {"type": "tool_result", "tool_use_id": "b", "content": "2"}],
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "1"}]},
                {"type": "tool_result", "tool_use_id": "b", "content": "2"},
            ],
        },
        [{"role": "tool", "tool_call_id": "a", "content": "1"}, {"role": "tool", "tool_call_id": "b", "content": "2"}],
        [{"type": "function_call_output", "call_id": "a", "output": "1"}, {"type": "function_call_output", "call_id": "b", "output": "2"}],
        [{"function_response": {"name": f"tool_{id}", "response": {"output": text}}} for id, text in (("a", "1"), ("b", "2"))],
        {"role": "user", "parts": [{"functionResponse": {"name": "x", "id": id, "response": {"output": id}}} for id in "ab"]},
        [FunctionCallOutput("x", "1", "a"), FunctionCallOutput("x", "2", "b")],
    ],
    ids=["anthropic", "anthropic message", "chat", "responses", "google", "google content", "items"],
)
@pytest.mark.parametrize("is_error", [False, True, ["b"]], ids=["none", "all", "one"])
def test_results_as_a_provider_takes_them(results: Any, is_error: Any) -> None:
    session = session_with_calls("a", "b")
    outputs = session.add_tool_results(results, is_error=is_error)
    assert [(output.call_id, output.name) for output in outputs] == [("a", "tool_a"), ("b", "tool_b")]
    assert [output.is_error for output in outputs] == {"False": [False, False], "True": [True, True], "['b']": [False, True]}[str(is_error)]
    assert list(session.items)[-2:] == outputs


def test_a_providers_error_mark_is_kept() -> None:
    [output] = session_with_calls("a").add_tool_results([{"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}])
    assert output.is_error


def test_two_results_without_ids_answer_two_calls_of_one_tool_in_order() -> None:
    session = Session([FunctionCall("f", "{}", "one"), FunctionCall("f", "{}", "two")])
    parts = [{"function_response": {"name": "f", "response": {"output": text}}} for text in "12"]
    outputs = session.add_tool_results({"role": "user", "parts": parts})
    assert [(output.call_id, output.output) for output in outputs] == [("one", (Text("1"),)), ("two", (Text("2"),))]


@pytest.mark.parametrize(
    ("results", "error"),
    [
        ({"a": "1", "other": "2"}, FormatError),
        ({"a": "1", 5: "2"}, FormatError),
        ({"a": object()}, FormatError),
        ([{"role": "tool", "tool_call_id": "a", "content": "1"}] * 2, DuplicateItemError),
        ([{"role": "user", "content": [{"type": "text", "text": "hi"}]}], FormatError),
        ([{"nothing": 1}], FormatError),
        ("text", FormatError),
        ([5], FormatError),
        ([{"function_response": {"name": "other", "response": {}}}], FormatError),
    ],
)
def test_a_wrong_result_is_refused_and_nothing_is_appended(results: Any, error: type[Exception]) -> None:
    session = session_with_calls("a", "b")
    with pytest.raises(error):
        session.add_tool_results(results)
    assert len(session.items) == 3


@pytest.mark.parametrize("is_error", ["a", 5, None])
def test_is_error_is_a_boolean_or_ids(is_error: Any) -> None:
    with pytest.raises(FormatError, match="is_error"):
        session_with_calls("a").add_tool_results({"a": ""}, is_error=is_error)


def test_a_second_output_is_refused() -> None:
    session = session_with_calls("a")
    session.add_tool_results({"a": "1"})
    with pytest.raises(FormatError, match="no call with id 'a' waits"):
        session.add_tool_results({"a": "2"})


# The promise, for any conversation


def pieces_of(messages: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the messages of Anthropic's API as a loop would meet them: answers, tool results, and the rest."""
    for message in messages:
        if message["role"] == "assistant":
            yield "answer", message
            continue
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        rest = [block for block in message["content"] if block["type"] != "tool_result"]
        yield "results", results
        yield "rest", {"role": "user", "content": rest}


def fresh(item: Item) -> Item:
    return replace(item, id=new_id())


@settings(deadline=None)
@given(session=sessions())
def test_a_log_made_of_answers_sends_the_same_request(session: Session) -> None:
    """A conversation put in answer by answer is sent as the same conversation read at once."""
    payload = Anthropic().sent(session)
    assume(CLOSING not in str(payload.messages))  # the loop's user never says it, and a message read alone cannot tell who did
    read = Session.from_anthropic(*payload)
    grown = Session([fresh(item) for item in Session.from_anthropic([], payload.system).items])
    for index, (kind, piece) in enumerate(pieces_of(payload.messages)):
        if kind == "answer":
            grown.add_response(piece)
        elif kind == "results":
            grown.add_tool_results([block for block in piece if not _is_interrupted(block)])
        elif piece["content"]:
            following = [{"role": "assistant", "content": []}] if index == 1 and len(payload.messages) > 1 else []
            for item in Session.from_anthropic([piece, *following]).items:
                grown.append(fresh(item))
    assert Anthropic().sent(grown) == Anthropic().sent(read)


def _is_interrupted(block: dict[str, Any]) -> bool:
    return block.get("is_error") is True and block["content"] == [{"type": "text", "text": INTERRUPTED}]


def test_google_calls_without_ids_get_ids_of_their_own() -> None:
    content = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}, {"function_call": {"name": "f"}}]}
    session = Session()
    for _ in range(2):
        items = session.add_response({"candidates": [{"content": content, "finishReason": "STOP"}]})
        session.add_tool_results({item.call_id: "" for item in items if isinstance(item, FunctionCall)})
    ids = [item.call_id for item in session.items if isinstance(item, FunctionCall)]
    assert len(set(ids)) == 4
    contents, _ = asyncio.run(session.to_google_contents())
    assert len(contents) == 5
