"""Anthropic's messages as a session, and back again."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session import (
    Compaction,
    Document,
    FormatError,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    Reasoning,
    Session,
    Text,
    Usage,
)
from session.items import Item
from session.providers import validate_anthropic
from session.providers.additions import INTERRUPTED, PREAMBLE, SUMMARY_HEADER
from session.providers.anthropic import from_anthropic, to_anthropic
from session.units import request_points
from tests.support.any_logs import logs
from tests.support.pictures import pdf
from tests.support.strategies import sessions

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
Json = dict[str, Any]


def text(said: str = "x", **more: Any) -> Json:
    return {"type": "text", "text": said, **more}


def user(*blocks: Any) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def use(call_id: str, **more: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "run", "input": {}, **more}


def searching(call_id: str = "s1") -> Json:
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": "q"}}


def found(call_id: str = "s1") -> Json:
    page = {"type": "web_search_result", "url": "https://example.org", "title": "t", "encrypted_content": "abc"}
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": [page]}


def same(messages: list[Json], system: Any = None) -> Session:
    """The session of a payload that is the same once it is sent again."""
    before = copy.deepcopy(messages)
    session = from_anthropic(messages, system)
    assert messages == before
    sent = to_anthropic(session)
    assert (sent.messages, sent.system) == (messages, system)
    assert validate_anthropic(sent) == []
    assert Session.from_dict(session.to_dict()).to_dict() == session.to_dict()
    return session


def told(items: Any) -> list[tuple[Any, ...]]:
    """What the items say, without ids and times."""
    said: list[tuple[Any, ...]] = []
    for item in items:
        if isinstance(item, Message):
            said.append((item.role, item.content))
        elif isinstance(item, Reasoning):
            said.append(("reasoning", item.text, item.signature, item.data))
        elif isinstance(item, FunctionCall):
            said.append(("call", item.name, json.loads(item.arguments), item.call_id))
        elif isinstance(item, FunctionCallOutput):
            said.append(("output", item.name, item.output, item.call_id, item.is_error))
        else:
            said.append((item.type,))
    return said


def test_what_the_format_holds_comes_back_as_the_same_items() -> None:
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
    sent = to_anthropic(Session(log))
    read = from_anthropic(*sent)
    assert told(read.items) == told(log)
    assert to_anthropic(read) == sent
    assert [item.id for item in read.items][:5] == ["s", "s.1", "m0", "m1", "m1.1"]
    assert {item.created_at for item in read.items} == {0.0}
    marked = from_anthropic(*to_anthropic(Session(log), caching=True))
    assert marked.to_dict()["items"] == read.to_dict()["items"]


def test_texts_stand_for_blocks() -> None:
    read = from_anthropic(
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": ["b"]}, {"role": "system", "content": "c"}], "d"
    )
    assert told(read.items) == [
        (role, (Text(said),)) for role, said in [("system", "d"), ("user", "a"), ("assistant", "b"), ("system", "c")]
    ]


def test_the_answer_as_the_sdk_gives_it_is_read_with_its_usage() -> None:
    from anthropic.types import Message as Answer

    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s"}, text("b"), use("c1")]
    usage = {"input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 11}
    given = {
        "id": "msg",
        "type": "message",
        "model": "m",
        "role": "assistant",
        "content": blocks,
        "stop_reason": "tool_use",
        "usage": usage,
    }
    answer = Answer.model_validate(given)
    for form in (answer, {"role": "assistant", "content": answer.content, "usage": answer.usage}, given):
        read = from_anthropic([{"role": "user", "content": "a"}, form])
        assert [item.usage for item in read.items] == [None, Usage(3, 5, 7, 11), None, None]
        assert told(read.items)[1:] == [("reasoning", "hm", "s", None), ("assistant", (Text("b"),)), ("call", "run", {}, "c1")]


# What was added


def test_additions_are_stripped() -> None:
    log: list[Item] = [FunctionCall("run", "{}", "c1"), FunctionCall("run", "{}", "c2"), FunctionCallOutput("run", "x", "c2")]
    sent = to_anthropic(Session(log))
    assert PREAMBLE in json.dumps(sent.messages)
    assert INTERRUPTED in json.dumps(sent.messages)
    read = from_anthropic(*sent)
    assert told(read.items) == told(log)
    assert to_anthropic(read) == sent


def test_a_preamble_before_something_of_the_users_leaves_an_empty_compaction() -> None:
    sent = to_anthropic(Session([Compaction("All."), Message("assistant", "b")]))
    read = from_anthropic(*sent)
    assert told(read.items) == [("compaction",), ("user", (Text(SUMMARY_HEADER + "All."),)), ("assistant", (Text("b"),))]
    assert to_anthropic(read) == sent


def test_two_interrupted_steps_stay_two() -> None:
    refused = {"type": "tool_result", "content": [text(INTERRUPTED)], "is_error": True}
    read = same(
        [
            user(text()),
            assistant(use("c1")),
            user({**refused, "tool_use_id": "c1"}),
            assistant(use("c2")),
            user({**refused, "tool_use_id": "c2"}),
        ]
    )
    assert [item.type for item in read.items] == ["message", "function_call", "function_call"]


def test_imitations_stay_what_they_are() -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [text(INTERRUPTED)]}
    read = same([user(text()), assistant(use("c1")), user(result, text(PREAMBLE))])
    assert [item.text for item in read.items if isinstance(item, Message | FunctionCallOutput)] == ["x", INTERRUPTED, PREAMBLE]


# What a session has no words for


def test_tools_of_the_server_go_back_as_they_came() -> None:
    mcp = {"type": "mcp_tool_use", "id": "p1", "name": "n", "server_name": "s", "input": {}}
    answer = {"type": "mcp_tool_result", "tool_use_id": "p1", "is_error": False, "content": [text("ok")]}
    cited = text(
        "b", citations=[{"type": "web_search_result_location", "url": "u", "title": "t", "encrypted_index": "i", "cited_text": "c"}]
    )
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    read = same(
        [user(text()), assistant(thinking, searching(), text("so"), found(), text("a"), cited, mcp, answer, use("c1")), _done("c1")]
    )
    assert [item.type for item in read.items] == ["message", "reasoning", *["message"] * 4, "function_call", "function_call_output"]


def _done(call_id: str) -> Json:
    return user({"type": "tool_result", "tool_use_id": call_id, "content": [text("done")]})


def test_calls_of_the_server_stand_with_their_results_in_one_message() -> None:
    read = same([user(text()), assistant(searching("s1"), searching("s2"), found("s2"), found("s1"), text("b"))])
    assert len(read.items) == 3


def test_a_call_of_the_server_without_a_result_is_told_as_text() -> None:
    for blocks in ([searching(), text("b")], [searching(), use("c1"), found()]):
        session = from_anthropic([user(text()), assistant(*blocks), *([_done("c1")] if len(blocks) == 3 else [])])
        sent = to_anthropic(session)
        assert validate_anthropic(sent) == []
        assert "web_search" in json.dumps(sent.messages)


def test_compaction_blocks_are_kept_as_summaries_are() -> None:
    read = same([user(text()), assistant({"type": "compaction", "content": "All of it."}, text("b")), user(text())])
    (kept,) = [item for item in read.items if isinstance(item, Message) and item.is_summary]
    assert kept.text == "All of it."


def test_blocks_of_the_users_that_have_no_words_are_carried_too() -> None:
    result = {"type": "search_result", "source": "s", "title": "t", "content": [text()]}
    read = same([user(text("a"), result, {"type": "container_upload", "file_id": "f"}, text("b"))])
    assert [item.type for item in read.items] == ["message"] * 4


def test_what_is_unknown_is_told_as_text() -> None:
    session = from_anthropic([user(text(), {"type": "hologram", "data": "x"}), assistant(use("c1")), _strange("c1")])
    assert validate_anthropic(sent := to_anthropic(session)) == []
    assert json.dumps(sent.messages).count("hologram") == 2


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


def test_carried_blocks_are_not_touched_by_sending() -> None:
    session = from_anthropic([user(text()), assistant(text("b ", citations=[{"type": "x"}]))])
    before = json.dumps(session.to_dict())
    assert to_anthropic(session, caching=True).messages[1]["content"][0]["text"] == "b"
    assert json.dumps(session.to_dict()) == before


# What is no message


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
def test_what_is_no_message_is_an_error_that_names_the_place(messages: Any, where: str) -> None:
    with pytest.raises(FormatError) as caught:
        from_anthropic(messages)
    assert caught.value.where == where


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for block in (use("c", input=deep), {"type": "hologram", "a": deep}):
        with pytest.raises(FormatError):
            from_anthropic([assistant(block)])
    while deep:
        deep = deep.pop("a")


JUNK = st.recursive(
    st.sampled_from(
        [None, True, 7, "", "x", PREAMBLE, "text", "server_tool_use", "web_search_tool_result", "tool_use", "tool_result", "base64"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "type", "text", "id", "name", "input", "content", "tool_use_id", "source", "data", "media_type", "title", "usage"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": JUNK, "usage": JUNK}), max_size=4), JUNK)
def test_junk_is_read_or_refused_and_never_tripped_over(messages: Any, system: Any) -> None:
    try:
        read = from_anthropic(messages, system)
    except FormatError:
        return
    assert validate_anthropic(to_anthropic(read)) == []


# Every log


@given(sessions() | logs())
def test_the_way_back_and_forth_changes_nothing(session: Session) -> None:
    for end in sorted({*request_points(session)[-2:], len(session.items)}):
        sent = to_anthropic(Session.showing(session, list(session.items[:end]), breaks=session.response_breaks, settled=0))
        read = from_anthropic(*sent)
        assert to_anthropic(read) == sent
        assert from_anthropic(*to_anthropic(read)).to_dict()["items"] == read.to_dict()["items"]


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(sessions())
def test_every_payload_is_of_the_sdks_types(session: Session) -> None:
    from anthropic.types import MessageParam
    from pydantic import TypeAdapter

    messages = to_anthropic(session).messages
    adapter = TypeAdapter(list[MessageParam])  # what it checks lazily needs it to be there still
    for checked, message in zip(adapter.validate_python(messages), messages, strict=True):
        content = checked["content"]
        assert len(list(content)) == len(message["content"])
