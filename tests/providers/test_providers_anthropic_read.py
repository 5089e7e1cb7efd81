"""Anthropic's messages read as sessions, and written again."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest

from session import Compaction, Document, FormatError, FunctionCall, FunctionCallOutput, Image, Message, Reasoning, Session, Text, Usage
from session.items import Item
from session.providers import validate_anthropic
from session.providers.additions import INTERRUPTED, PREAMBLE, summary_text
from session.providers.anthropic import from_anthropic, to_anthropic
from tests.support.pictures import pdf

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
Json = dict[str, Any]


def text(content: str = "x", **fields: Any) -> Json:
    return {"type": "text", "text": content, **fields}


def user(*blocks: Any) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def use(call_id: str, **fields: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "run", "input": {}, **fields}


def searching(call_id: str = "s1") -> Json:
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": "q"}}


def found(call_id: str = "s1") -> Json:
    page = {"type": "web_search_result", "url": "https://example.org", "title": "t", "encrypted_content": "abc"}
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": [page]}


def same(messages: list[Json], system: Any = None) -> Session:
    """Return the session of a payload. Check that it is written as the same payload again."""
    before = copy.deepcopy(messages)
    session = from_anthropic(messages, system)
    assert messages == before
    payload = to_anthropic(session)
    assert (payload.messages, payload.system) == (messages, system or [])
    assert validate_anthropic(payload) == []
    assert Session.from_dict(session.to_dict()).to_dict() == session.to_dict()
    return session


def comparable(items: Any) -> list[tuple[Any, ...]]:
    """Return the contents of items, without ids and times."""
    rows: list[tuple[Any, ...]] = []
    for item in items:
        if isinstance(item, Message):
            rows.append((item.role, item.content))
        elif isinstance(item, Reasoning):
            rows.append(("reasoning", item.text, item.signature, item.data))
        elif isinstance(item, FunctionCall):
            rows.append(("call", item.name, json.loads(item.arguments), item.call_id))
        elif isinstance(item, FunctionCallOutput):
            rows.append(("output", item.name, item.output, item.call_id, item.is_error))
        else:
            rows.append((item.type,))
    return rows


def test_items_that_the_format_can_hold_survive_a_round_trip() -> None:
    log: list[Item] = [
        Message("system", "One."),
        Message("system", "Two."),
        Message("user", ["Look", Image(data=PNG, media_type="image/png"), Image(url="https://example.org/a.png"), Image(file_id="f")]),
        Reasoning("hm", "sealed"),
        Reasoning(data="xyz"),
        Message("assistant", "On it."),
        FunctionCall("run", '{"a": 1}', "c1"),
        FunctionCall("read", "{}", "c2"),
        FunctionCallOutput("run", ["Look:", Image(data=PNG, media_type="image/png")], "c1"),
        FunctionCallOutput("read", "no", "c2", is_error=True),
        Message("user", ["Well?", Document(data=pdf(), media_type="application/pdf", title="Bill"), Document(file_id="g")]),
        FunctionCall("run", "{}", "c3"),
        FunctionCallOutput("run", [], "c3"),
        Message("user", Document(text="d", media_type="text/plain", title="t")),
        Message("assistant", "Done."),
    ]
    payload = to_anthropic(Session(log))
    restored = from_anthropic(*payload)
    assert comparable(restored.items) == comparable(log)
    assert to_anthropic(restored) == payload
    assert [item.id for item in restored.items][:5] == ["s", "s.1", "m0", "m1", "m1.1"]
    assert {item.created_at for item in restored.items} == {0.0}
    marked = from_anthropic(*to_anthropic(Session(log), caching=True))
    assert marked.to_dict()["items"] == restored.to_dict()["items"]


def test_plain_texts_are_read_as_blocks() -> None:
    restored = from_anthropic(
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": ["b"]}, {"role": "system", "content": "c"}], "d"
    )
    assert comparable(restored.items) == [
        (role, (Text(content),)) for role, content in [("system", "d"), ("user", "a"), ("assistant", "b"), ("system", "c")]
    ]


def test_an_sdk_response_is_read_with_its_usage() -> None:
    from anthropic.types import Message as Answer

    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s"}, text("b"), use("c1")]
    usage = {"input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 11}
    as_json = {
        "id": "msg",
        "type": "message",
        "model": "m",
        "role": "assistant",
        "content": blocks,
        "stop_reason": "tool_use",
        "usage": usage,
    }
    answer = Answer.model_validate(as_json)
    for form in (answer, {"role": "assistant", "content": answer.content, "usage": answer.usage}, as_json):
        restored = from_anthropic([{"role": "user", "content": "a"}, form])
        assert [item.usage for item in restored.items] == [None, Usage(3, 5, 7, 11), None, None]
        assert comparable(restored.items)[1:] == [("reasoning", "hm", "s", None), ("assistant", (Text("b"),)), ("call", "run", {}, "c1")]


# Additions of the converter


def test_additions_are_removed() -> None:
    log: list[Item] = [FunctionCall("run", "{}", "c1"), FunctionCall("run", "{}", "c2"), FunctionCallOutput("run", "x", "c2")]
    payload = to_anthropic(Session(log))
    assert PREAMBLE in json.dumps(payload.messages)
    assert INTERRUPTED in json.dumps(payload.messages)
    restored = from_anthropic(*payload)
    assert comparable(restored.items) == comparable(log)
    assert to_anthropic(restored) == payload


def test_a_preamble_before_user_content_leaves_an_empty_compaction() -> None:
    payload = to_anthropic(Session([Compaction("All."), Message("assistant", "b")]))
    restored = from_anthropic(*payload)
    assert comparable(restored.items) == [("compaction",), ("user", (Text(summary_text("All.")),)), ("assistant", (Text("b"),))]
    assert to_anthropic(restored) == payload


def test_two_interrupted_steps_are_not_merged() -> None:
    refused = {"type": "tool_result", "content": [text(INTERRUPTED)], "is_error": True}
    restored = same(
        [
            user(text()),
            assistant(use("c1")),
            user({**refused, "tool_use_id": "c1"}),
            assistant(use("c2")),
            user({**refused, "tool_use_id": "c2"}),
        ]
    )
    assert [item.type for item in restored.items] == ["message", "function_call", "function_call"]


def test_imitated_additions_are_kept() -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [text(INTERRUPTED)]}
    restored = same([user(text()), assistant(use("c1")), user(result, text(PREAMBLE))])
    assert [item.text for item in restored.items if isinstance(item, Message | FunctionCallOutput)] == ["x", INTERRUPTED, PREAMBLE]


# Blocks that a session has no words for


def test_server_tool_blocks_are_sent_back_unchanged() -> None:
    mcp = {"type": "mcp_tool_use", "id": "p1", "name": "n", "server_name": "s", "input": {}}
    answer = {"type": "mcp_tool_result", "tool_use_id": "p1", "is_error": False, "content": [text("ok")]}
    cited = text(
        "b", citations=[{"type": "web_search_result_location", "url": "u", "title": "t", "encrypted_index": "i", "cited_text": "c"}]
    )
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    restored = same(
        [user(text()), assistant(thinking, searching(), text("so"), found(), text("a"), cited, mcp, answer, use("c1")), _done("c1")]
    )
    assert [item.type for item in restored.items] == ["message", "reasoning", *["message"] * 4, "function_call", "function_call_output"]


def _done(call_id: str) -> Json:
    return user({"type": "tool_result", "tool_use_id": call_id, "content": [text("done")]})


def test_server_calls_share_a_message_with_their_results() -> None:
    restored = same([user(text()), assistant(searching("s1"), searching("s2"), found("s2"), found("s1"), text("b"))])
    assert len(restored.items) == 3


def test_a_server_call_without_a_result_is_sent_as_text() -> None:
    for blocks in ([searching(), text("b")], [searching(), use("c1"), found()]):
        session = from_anthropic([user(text()), assistant(*blocks), *([_done("c1")] if len(blocks) == 3 else [])])
        payload = to_anthropic(session)
        assert validate_anthropic(payload) == []
        assert "web_search" in json.dumps(payload.messages)


def test_compaction_blocks_are_kept_like_summaries() -> None:
    restored = same([user(text()), assistant({"type": "compaction", "content": "All of it."}, text("b")), user(text())])
    (summary,) = [item for item in restored.items if isinstance(item, Compaction)]
    assert summary.summary == "All of it."


def test_unknown_user_blocks_are_carried() -> None:
    result = {"type": "search_result", "source": "s", "title": "t", "content": [text()]}
    restored = same([user(text("a"), result, {"type": "container_upload", "file_id": "f"}, text("b"))])
    assert [item.type for item in restored.items] == ["message"] * 4


def test_unknown_blocks_of_answers_and_results_are_sent_as_text() -> None:
    session = from_anthropic([user(text()), assistant({"type": "hologram", "data": "x"}, use("c1")), _strange("c1")], is_answer=True)
    assert validate_anthropic(payload := to_anthropic(session)) == []
    assert json.dumps(payload.messages).count("hologram") == 2


@pytest.mark.parametrize(
    ("block", "kind", "remedy"),
    [
        ({"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}, "toolUse", "Session.from_converse"),
        ({"toolResult": {"toolUseId": "c", "content": []}}, "toolResult", "Session.from_converse"),
        ({"text": "a"}, "text", "Session.from_converse"),
        ({"functionCall": {"name": "f"}}, "functionCall", "Session.from_google"),
        ({"type": "image_url", "image_url": {"url": "x"}}, "image_url", "Session.from_openai"),
        ({"type": "input_text", "text": "a"}, "input_text", "Session.from_openai_responses"),
        ({"type": "hologram"}, "hologram", "leave it out"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_block_that_is_not_anthropics_is_refused_with_the_reader_to_call(block: Json, kind: str, remedy: str) -> None:
    with pytest.raises(FormatError, match=rf"messages\[1\].content\[0\]: '{kind}' .*{remedy}"):
        from_anthropic([user(text()), user(block)])


def test_calls_of_chat_completions_are_refused_with_the_reader_to_call() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    with pytest.raises(FormatError, match="from_openai"):
        from_anthropic([{"role": "assistant", "content": None, "tool_calls": [call]}])


def _strange(call_id: str) -> Json:
    return user({"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "hologram"}, text("x")]})


@pytest.mark.parametrize(
    "forged",
    [
        7,
        [7],
        [{}],
        [use("c9")],
        [searching()],
        [found()],
        [text(" ")],
        [{"type": "tool_result", "tool_use_id": "c"}],
        [{"type": "thinking"}],
    ],
)
def test_forged_blocks_are_not_sent(forged: Any) -> None:
    session = Session([Message("user", "a"), Message("assistant", "b", extra={"anthropic_blocks": forged})])
    assert to_anthropic(session).messages[1]["content"] == [text("b")]


def test_sending_does_not_change_carried_blocks() -> None:
    session = from_anthropic([user(text()), assistant(text("b ", citations=[{"type": "x"}]))])
    before = json.dumps(session.to_dict())
    assert to_anthropic(session, caching=True).messages[1]["content"][0]["text"] == "b"
    assert json.dumps(session.to_dict()) == before


# Invalid messages


@pytest.mark.parametrize(
    ("messages", "where"),
    [
        ("Hi", "messages"),
        ([7], "messages[0]"),
        ([{"role": "x"}], "messages[0].role"),
        ([{"role": []}], "messages[0].role"),
        ([{"role": "user", "content": 7}], "messages[0].content"),
        ([user(7)], "messages[0].content[0]"),
        ([user(text(7))], "messages[0].content[0].text"),  # type: ignore[arg-type]
        ([user({"type": "image"})], "messages[0].content[0].source"),
        ([user({"type": "image", "source": {"type": "text", "data": "x"}})], "messages[0].content[0].source.type"),
        ([user({"type": "image", "source": {"type": "base64", "data": "§", "media_type": "x"}})], "messages[0].content[0].source.data"),
        ([assistant({"type": "tool_use", "id": "c"})], "messages[0].content[0].name"),
        ([assistant(use("c", input=[]))], "messages[0].content[0].input"),
        ([assistant(use("c", input={"a": float("nan")}))], "messages[0].content[0].input.a"),
        ([user({"type": "tool_result"})], "messages[0].content[0].tool_use_id"),
        ([user({"type": "tool_result", "tool_use_id": "c", "is_error": "no"})], "messages[0].content[0].is_error"),
        ([{**assistant(text()), "usage": 7}], "messages[0].usage"),
    ],
)
def test_an_invalid_message_is_an_error_that_names_the_place(messages: Any, where: str) -> None:
    with pytest.raises(FormatError) as caught:
        from_anthropic(messages)
    assert caught.value.where == where


# Every log
