"""Sessions written as Anthropic's messages, block by block. `test_every_log.py` checks that all payloads are valid."""

import base64
import copy
import json
import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from session import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    MessageCategory,
    Reasoning,
    Session,
    Text,
)
from session.image_check import UNKNOWN
from session.items import Item
from session.providers import validate_anthropic
from session.providers.additions import CLOSING, FAILED, INTERRUPTED, PREAMBLE, summary_text
from session.providers.anthropic import AnthropicMessages, to_anthropic
from tests.support.pictures import encoded, pdf, png

PNG = png(2, 2)
JPEG = encoded("JPEG", 3, 5)
PDF = pdf()
WIRE_PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}}


def user(text: str, **fields: Any) -> Message:
    return Message("user", text, **fields)


def assistant(text: str, **fields: Any) -> Message:
    return Message("assistant", text, **fields)


def call(call_id: str, arguments: str = "{}", name: str = "run", **fields: Any) -> FunctionCall:
    return FunctionCall(name, arguments, call_id, **fields)


def output(call_id: str, text: Any = "done", **fields: Any) -> FunctionCallOutput:
    return FunctionCallOutput("run", text, call_id, **fields)


def wire(*items: Item, caching: bool = False) -> AnthropicMessages:
    """Return the payload of these items. Check that it is valid JSON and that the log does not change."""
    session = Session(items)
    before = json.dumps(session.to_dict())
    payload = to_anthropic(session, caching=caching)
    assert validate_anthropic(payload) == []
    json.dumps(payload, allow_nan=False).encode()
    assert json.dumps(session.to_dict()) == before
    return payload


def text(content: str) -> dict[str, str]:
    return {"type": "text", "text": content}


def blocks(*items: Item) -> list[list[dict[str, Any]]]:
    return [message["content"] for message in wire(*items).messages]


def outline(*items: Item) -> list[str]:
    """Return a line for each message: the first letter of its role, then each block as its text, id or type."""
    return [
        message["role"][0]
        + ": "
        + " ".join(block.get("text") or block.get("id") or block.get("tool_use_id") or block["type"] for block in message["content"])
        for message in wire(*items).messages
    ]


# Messages and roles


def test_a_session_gives_messages_and_system() -> None:
    session = Session()
    session.add_message("system", "Be terse.")
    session.add_message("user", "Hi")
    session.add_message("assistant", "Hello")
    messages, system = session.to_anthropic_messages()
    assert messages == [{"role": "user", "content": [text("Hi")]}, {"role": "assistant", "content": [text("Hello")]}]
    assert system == "Be terse."


def test_an_empty_session_gives_an_empty_payload() -> None:
    assert wire() == ([], [])
    assert wire(Message("system", "Be terse.")) == ([], "Be terse.")


def test_system_messages_become_blocks_in_order() -> None:
    payload = wire(Message("system", "One."), user("Hi"), Message("developer", ["Two.", "  ", "Three."]), assistant("Hello"))
    assert payload.system == [text("One."), text("Two."), text("Three.")]
    assert [message["role"] for message in payload.messages] == ["user", "assistant"]


def test_the_role_and_not_the_category_makes_a_system_message() -> None:
    payload = wire(user("Rules of the house.", category=MessageCategory.SYSTEM), user("Hi"))
    assert payload == ([{"role": "user", "content": [text("Rules of the house."), text("Hi")]}], [])


def test_an_image_in_a_system_message_becomes_a_note() -> None:
    assert wire(Message("system", [Text("See:"), Image(data=PNG)]), user("Hi")).system == [text("See:"), text("[image not shown]")]


def test_consecutive_messages_of_one_role_are_merged() -> None:
    assert outline(user("a"), user("b"), assistant("c"), assistant("d"), user("e")) == ["u: a b", "a: c d", "u: e"]


def test_the_closing_line_of_an_earlier_request_stays() -> None:
    items = user("a"), assistant("c"), Message("system", "!"), assistant("d")
    assert outline(*items[:3]) == ["u: a", "a: c", f"u: {CLOSING}"]
    assert outline(*items) == ["u: a", "a: c", f"u: {CLOSING}", "a: d"]


def test_config_updates_are_not_sent() -> None:
    assert outline(user("a"), AgentConfigUpdate("Be b.", ("run",)), assistant("b")) == ["u: a", "a: b"]


def test_a_handoff_is_a_note_that_the_receiving_agent_reads() -> None:
    handoff = AgentHandoff("billing", "sales", "wants a refund")
    assert outline(user("a"), assistant("b"), handoff, assistant("c")) == [
        "u: a",
        "a: b",
        "u: [Handoff from sales to billing: wants a refund]",
        "a: c",
    ]
    assert outline(call("c1"), handoff, output("c1"))[-1].endswith("[Handoff from sales to billing: wants a refund]")
    assert outline(AgentHandoff("a\n\nb"), user("a")) == ["u: [Handoff to a b] a"]


def test_blank_texts_and_blank_messages_are_left_out() -> None:
    assert outline(user("a"), assistant(" \n"), Message("user", ["", "b", "\t"]), assistant("")) == ["u: a b"]
    assert wire(user(" "), Message("system", "")) == ([], [])


def test_trailing_whitespace_is_removed_only_where_a_request_may_end() -> None:
    assert blocks(user("a "), assistant("b \n"))[-1] == [text("b")]
    assert blocks(user("a "), assistant("b \n"), user("c "))[1:] == [[text("b \n")], [text("c ")]]
    # A request may have ended between the responses of two agents, and the next request must extend it.
    assert blocks(user("a"), assistant("b \n", agent_id="x"), assistant("c", agent_id="y"))[1] == [text("b"), text("c")]


# The beginning


@pytest.mark.parametrize(
    "head",
    [
        assistant("b"),
        Reasoning("hm", "sealed"),
        call("c1"),
        Compaction("All of it."),
        assistant("[Conversation Summary] …", extra={"summary": True}),
        assistant("b", category=MessageCategory.SYSTEM),
    ],
)
@pytest.mark.parametrize("system", [[], [Message("system", "!", category=MessageCategory.CONTEXT), AgentConfigUpdate("Be x."), user(" ")]])
def test_the_preamble_is_added_when_the_first_message_is_not_the_users(system: list[Item], head: Item) -> None:
    payload = wire(*system, head, user("Go on"))
    assert payload.messages[0]["role"] == "user"
    assert payload.messages[0]["content"][0] == text(PREAMBLE)
    assert PREAMBLE not in json.dumps(wire(*system, user("Go on"), head).messages)


def test_a_leading_compaction_shares_a_user_message_with_the_preamble() -> None:
    assert blocks(Compaction("All of it."), assistant("Yes."))[0] == [text(PREAMBLE), text(summary_text("All of it."))]
    assert blocks(user("a"), Compaction(" "), assistant("Yes."))[0] == [text("a")]


def test_a_summary_is_the_assistants_text() -> None:
    content = outline(user("a"), assistant("[Conversation Summary] s", extra={"summary": True}), user("b"))
    assert content == ["u: a", "a: [Conversation Summary] s", "u: b"]


def summary(content: str) -> Message:
    return assistant(content, extra={"summary": True})


def thought() -> list[Item]:
    return [Reasoning("hm", "sealed"), call("c1"), output("c1")]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ([summary("s")], [f"u: {PREAMBLE} s"]),
        ([user("a"), summary("s")], ["u: a s"]),
        ([user("a"), summary("s"), Message("system", "!"), user(" "), summary("t"), summary(" ")], ["u: a s t"]),
        ([user("a"), assistant("b"), summary("s")], ["u: a", "a: b", "u: s"]),
        ([user("a"), summary("s"), assistant("b"), summary("t")], ["u: a s", "a: b", "u: t"]),
        ([user("a"), call("c0"), summary("s"), output("c0")], ["u: a", "a: c0", "u: c0 s"]),
    ],
)
def test_a_summary_right_before_a_response_is_the_users_text(before: list[Item], expected: list[str]) -> None:
    """With thinking enabled, a turn that calls tools begins with thinking (A4)."""
    assert outline(*before, *thought()) == [*expected, "a: thinking c1", "u: c1"]
    messages = wire(*before, *thought(), caching=True).messages
    assert validate_anthropic({"messages": messages, "thinking": {"type": "enabled", "budget_tokens": 1_024}}) == []


@pytest.mark.parametrize("after", [[assistant("b")], [call("c1")], [Reasoning("hm"), call("c1")], [*thought()], []], ids=range(5))
def test_a_summary_at_the_end_of_a_request_is_the_users_text(after: list[Item]) -> None:
    """The request is repeated unchanged, because thinking in the response is bound to it (A5)."""
    assert outline(user("a"), summary("s"), *after)[0] == "u: a s"


def test_a_summary_before_a_user_message_stays_the_assistants() -> None:
    assert outline(user("a"), summary("s"), user("b"), *thought())[1] == "a: s"


def test_a_compaction_block_before_thinking_keeps_its_place() -> None:
    block = {"type": "compaction", "content": "Before."}
    carrier = assistant("Before.", extra={"summary": True, "anthropic_blocks": [block]})
    assert wire(user("a"), carrier, *thought()).messages[1]["content"][0] == block


def test_a_damaged_result_of_a_server_tool_is_not_sent_back() -> None:
    for data, goes in ((PDF, True), (PDF[:-20], False)):
        source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(data).decode()}
        fetched = {"type": "web_fetch_result", "url": "https://example.org/a", "content": {"type": "document", "source": source}}
        carried = [
            {"type": "server_tool_use", "id": "s1", "name": "web_fetch", "input": {}},
            {"type": "web_fetch_tool_result", "tool_use_id": "s1", "content": fetched},
            text("Read."),
        ]
        payload = wire(user("a"), assistant("Read.", extra={"anthropic_blocks": carried})).messages[1]["content"]
        assert payload == (carried if goes else [text("Read.")])


def test_a_log_that_begins_with_a_blank_user_message_is_valid() -> None:
    assert outline(user(" "), assistant("b"), user("c")) == [f"u: {PREAMBLE}", "a: b", "u: c"]
    assert outline(assistant("b", category=MessageCategory.SYSTEM), user("c")) == [f"u: {PREAMBLE}", "a: b", "u: c"]


# Calls and results


def test_two_steps_are_not_merged() -> None:
    log = user("a"), call("c1"), output("c1"), call("c2"), output("c2"), assistant("b")
    assert outline(*log) == ["u: a", "a: c1", "u: c1", "a: c2", "u: c2", "a: b"]


def test_parallel_calls_share_a_message_and_so_do_their_results_in_order() -> None:
    log = user("a"), assistant("ok"), call("c1"), call("c2"), output("c2"), output("c1"), user("b")
    assert outline(*log) == ["u: a", "a: ok c1 c2", "u: c1 c2 b"]


def test_consecutive_responses_are_two_steps_if_the_first_has_calls() -> None:
    log: list[Item] = [user("a"), call("c1", agent_id="x"), call("c2", agent_id="y"), output("c1"), output("c2"), user("b")]
    assert outline(*log) == ["u: a", "a: c1", "u: c1", "a: c2", "u: c2 b"]


def test_a_view_keeps_separate_responses_separate() -> None:
    items: list[Item] = [user("a"), call("c1"), call("c2")]
    view = Session.showing(Session(), items, breaks=frozenset({items[2].id}), settled=0)
    payload = to_anthropic(view)
    assert validate_anthropic(payload) == []
    assert [len(message["content"]) for message in payload.messages] == [1, 1, 1, 1, 1]


def test_a_call_without_an_output_is_interrupted() -> None:
    payload = wire(user("a"), call("c1"), call("c2"), output("c2"), user("b"))
    assert payload.messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [text(INTERRUPTED)], "is_error": True},
        {"type": "tool_result", "tool_use_id": "c2", "content": [text("done")]},
        text("b"),
    ]


def test_a_late_output_moves_to_its_call() -> None:
    log = user("a"), call("c1"), user("Still there?"), assistant("Yes."), output("c1", "late"), user("b")
    payload = wire(*log)
    assert outline(*log) == ["u: a", "a: c1", "u: c1 Still there?", "a: Yes.", "u: b"]
    assert payload.messages[2]["content"][0]["content"] == [text("late")]


def test_outputs_without_a_call_are_left_out() -> None:
    assert outline(user("a"), output("c0"), assistant("b"), output("c0")) == ["u: a", "a: b", "u: [Please continue.]"]
    assert outline(user("a"), call("c1"), output("c1"), output("c1", "again"), user("b")) == ["u: a", "a: c1", "u: c1 b"]
    assert blocks(user("a"), call("c1"), output("c1"), output("c1", "again"))[2][0]["content"] == [text("done")]


def test_repeated_call_ids_are_made_unique_in_calls_and_results() -> None:
    log = user("a"), call("c1", '{"n": 1}'), output("c1", "one"), call("c1", '{"n": 2}'), output("c1", "two"), call("c1_2"), output("c1_2")
    messages = wire(*log).messages
    assert [messages[index]["content"][0]["id"] for index in (1, 3, 5)] == ["c1", "c1_2", "c1_2_2"]
    assert [messages[index]["content"][0]["tool_use_id"] for index in (2, 4, 6)] == ["c1", "c1_2", "c1_2_2"]


def test_an_output_answers_the_last_unanswered_call_with_its_id() -> None:
    messages = wire(user("a"), call("c1"), call("c1"), output("c1", "second"), output("c1", "first")).messages
    assert [block["content"][0]["text"] for block in messages[2]["content"]] == ["first", "second"]


def test_a_longer_log_gives_earlier_calls_the_same_ids() -> None:
    log = [user("a"), *(item for _ in range(30) for item in (call("x|y"), output("x|y"), call("x_y_2"), output("x_y_2")))]
    all_messages = wire(*log).messages
    for end in range(2, len(log), 7):
        assert [message["content"][0].get("id") for message in wire(*log[:end]).messages] == [
            message["content"][0].get("id") for message in all_messages[: len(wire(*log[:end]).messages)]
        ]


@pytest.mark.parametrize("call_id", ["", "fc|1", "é", "a b", "c1\n", "x" * 200, "functions.run:0"])
def test_invalid_call_ids_are_made_safe(call_id: str) -> None:
    messages = wire(user("a"), call(call_id), output(call_id), call(call_id), output(call_id)).messages
    ids = [messages[1]["content"][0]["id"], messages[3]["content"][0]["id"]]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", wire_id) for wire_id in ids)
    assert len(set(ids)) == 2
    assert ids == [messages[2]["content"][0]["tool_use_id"], messages[4]["content"][0]["tool_use_id"]]


@pytest.mark.parametrize(("name", "expected"), [("read_file", "read_file"), ("fs.read", "fs_read"), ("", "tool"), ("n" * 300, "n" * 128)])
def test_invalid_tool_names_are_made_safe(name: str, expected: str) -> None:
    assert blocks(user("a"), call("c1", name=name))[1][0]["name"] == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"path": "a", "n": [1, null, 2.5]}', {"path": "a", "n": [1, None, 2.5]}),
        ("", {}),
        (" \n", {}),
        (r'{"a": "\ud800", "\udfff": 1}', {"a": "\ufffd", "\ufffd": 1}),
    ],
)
def test_arguments_are_an_object(arguments: str, expected: dict[str, Any]) -> None:
    assert blocks(user("a"), call("c1", arguments))[1][0]["input"] == expected


@pytest.mark.parametrize(
    "arguments",
    [
        *('{"path": ', "[1]", "null", '"x"', "7", "ls -l", '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}'),
        pytest.param(f'{{"a": {"9" * 5000}}}', id="huge integer"),
        pytest.param('{"a":' * 100_000, id="deep and broken"),
        pytest.param('{"a":' * 150 + "1" + "}" * 150, id="deep"),
    ],
)
def test_arguments_that_are_not_an_object_are_sent_as_text(arguments: str) -> None:
    assert blocks(user("a"), call("c1", arguments))[1][0]["input"] == {"arguments": arguments}


def test_results_hold_texts_images_and_the_error_mark() -> None:
    log = (
        *(user("a"), call("c1"), call("c2"), call("c3"), call("c4")),
        output("c1", ["Look:", Image(data=PNG), " "]),
        output("c2", ""),
        output("c3", ["No.", Image(data=PNG)], is_error=True),
        output("c4", "\n", is_error=True),
    )
    assert blocks(*log)[2] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [text("Look:"), WIRE_PNG]},
        {"type": "tool_result", "tool_use_id": "c2"},
        {"type": "tool_result", "tool_use_id": "c3", "content": [text("No."), text("[image not shown]")], "is_error": True},
        {"type": "tool_result", "tool_use_id": "c4", "content": [text(FAILED)], "is_error": True},
    ]


# Reasoning


def test_thinking_is_sent_unchanged() -> None:
    log = user("a"), Reasoning(" hm \n", "sealed"), Reasoning(data="xyz"), Reasoning("", "sealed too"), assistant("b"), call("c1")
    assert blocks(*log)[1] == [
        {"type": "thinking", "thinking": " hm \n", "signature": "sealed"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "thinking", "thinking": "", "signature": "sealed too"},
        text("b"),
        {"type": "tool_use", "id": "c1", "name": "run", "input": {}},
    ]


def test_unsigned_thinking_is_left_out() -> None:
    assert outline(user("a"), Reasoning("hm"), assistant("b"), user("c"), Reasoning("hm", signature=""), call("c1")) == [
        "u: a",
        "a: b",
        "u: c",
        "a: c1",
        "u: c1",
    ]


@pytest.mark.parametrize(("provider", "expected"), [("anthropic", 2), ("openai", 1), ("google", 1)])
def test_thinking_of_another_provider_is_left_out(provider: str, expected: int) -> None:
    log = user("a"), Reasoning("hm", "sealed", extra={"provider": provider}), assistant("b")
    assert len(blocks(*log)[1]) == expected


def test_thinking_keeps_its_place() -> None:
    log = user("a"), Reasoning("1", "s"), assistant("b"), Reasoning("2", "s"), call("c1"), Reasoning("3", "s"), call("c2")
    assert outline(*log)[1] == "a: thinking b thinking c1 thinking c2"


def test_trailing_thinking_is_left_out() -> None:
    assert outline(user("a"), Reasoning("hm", "s")) == ["u: a"]
    assert outline(user("a"), Reasoning("hm", "s"), assistant(" "), user("b")) == ["u: a b"]
    assert outline(user("a"), assistant("b"), Reasoning("hm", "s"), user("c")) == ["u: a", "a: b", "u: c"]
    assert outline(user("a"), call("c1"), Reasoning("hm", "s"), output("c1")) == ["u: a", "a: c1", "u: c1"]
    # Even if another response follows: it was made without that thought.
    assert outline(user("a"), Reasoning("hm", "s", agent_id="x"), assistant("b", agent_id="y")) == ["u: a", "a: b"]


# Images and documents


def test_images_are_sent_from_every_source(tmp_path: Path) -> None:
    file = tmp_path / "shot.bin"
    file.write_bytes(JPEG)
    images = [
        Image(data=PNG),
        Image(data=PNG, media_type="image/jpeg"),
        Image(data=JPEG, media_type="IMAGE/JPG"),
        Image(url="https://example.org/a.png"),
        Image(url="data:image/gif;base64," + base64.b64encode(PNG).decode()),
        Image(file_id="file_1"),
        Image(path=str(file)),
    ]
    assert [block["source"] for block in blocks(Message("user", images))[0]] == [
        WIRE_PNG["source"],
        WIRE_PNG["source"],
        {"type": "base64", "media_type": "image/jpeg", "data": base64.b64encode(JPEG).decode()},
        {"type": "url", "url": "https://example.org/a.png"},
        WIRE_PNG["source"],
        {"type": "file", "file_id": "file_1"},
        {"type": "base64", "media_type": "image/jpeg", "data": base64.b64encode(JPEG).decode()},
    ]


@pytest.mark.parametrize(
    ("image", "note"),
    [
        (Image(path="/no/such/file.png"), "[image missing: /no/such/file.png]"),
        (Image(path="a\0b"), "[image missing: ab]"),
        (Image(path=os.path.curdir), f"[image missing: {os.path.curdir}]"),
        (Image(data=b""), "[image empty]"),
        (Image(data=b"\xff\xd8\xff\xe0"), "[image damaged: its header cannot be read]"),
        (Image(data=b"who knows", media_type="IMAGE/JPG"), f"[image {UNKNOWN}]"),
        (Image(data=JPEG[: len(JPEG) // 2]), "[image damaged: its content cannot be decoded]"),
        (Image(data=b"BM12"), "[image of unknown format]"),
        (Image(data=b"BM12", media_type="image/bmp"), "[image of unknown format: image/bmp]"),
        (Image(url="file:///etc/hosts"), "[image out of reach: file:///etc/hosts]"),
        (Image(url="data:image/png;base64,§"), "[image empty]"),
        (Image(url="data:image/png"), "[image empty]"),
    ],
)
def test_images_that_cannot_be_sent_become_notes(image: Image, note: str) -> None:
    assert blocks(Message("user", image)) == [[text(note)]]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_read_as_an_image(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    session = Session([Message("user", Image(path=str(pipe)))])
    thread = threading.Thread(target=to_anthropic, args=(session,), daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    assert to_anthropic(session).messages[0]["content"] == [text(f"[image missing: {pipe}]")]


def test_images_in_an_assistant_message_become_notes() -> None:
    log = user("a"), Message("assistant", ["Here:", Image(data=PNG), Document(data=PDF, title="Bill"), Document(text="plain")])
    assert blocks(*log)[1] == [text("Here:"), text("[image not shown]"), text("[document not shown: Bill]"), text("plain")]


def test_documents_are_sent_from_every_source() -> None:
    documents = [
        Document(data=PDF, title="Bill"),
        Document(data="naïve".encode(), media_type="text/markdown"),
        Document(data=b'{"a": 1}', media_type="application/json"),
        Document(text="plain", title=" "),
        Document(url="https://example.org/a.pdf"),
        Document(file_id="file_2", title="t" * 900),
        Document(data=b"\xd0\xcf\x11\xe0", title="Old.doc"),
        Document(text=" "),
    ]
    plain = {"type": "text", "media_type": "text/plain"}
    assert blocks(Message("user", documents)) == [
        [
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(PDF).decode()},
                "title": "Bill",
            },
            {"type": "document", "source": {**plain, "data": "naïve"}},
            {"type": "document", "source": {**plain, "data": '{"a": 1}'}},
            {"type": "document", "source": {**plain, "data": "plain"}},
            {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
            {"type": "document", "source": {"type": "file", "file_id": "file_2"}, "title": "t" * 500},
            text("[document not shown: Old.doc]"),
        ]
    ]


# Caching


def marked(payload: AnthropicMessages) -> list[str]:
    system = payload.system if isinstance(payload.system, list) else []
    every = [("system", system), *((f"messages[{index}]", message["content"]) for index, message in enumerate(payload.messages))]
    return [f"{where}[{index}]" for where, content in every for index, block in enumerate(content) if "cache_control" in block]


def test_caching_marks_system_turn_previous_request_and_this_request() -> None:
    log = Message("system", "Be terse."), user("a"), call("c1"), output("c1"), call("c2"), output("c2"), user("b")
    payload = wire(*log, caching=True)
    assert payload.system == [{"type": "text", "text": "Be terse.", "cache_control": {"type": "ephemeral"}}]
    assert marked(payload) == ["system[0]", "messages[0][0]", "messages[2][0]", "messages[4][1]"]


def test_caching_changes_nothing_but_the_marks() -> None:
    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: bare(member) for key, member in value.items() if key != "cache_control"}
        return [bare(member) for member in value] if isinstance(value, list) else value

    log = Message("system", ["One.", "Two."]), user("a"), Reasoning("hm", "s"), assistant("b ")
    plain, cached = wire(*log), wire(*log, caching=True)
    assert bare(cached.messages) == plain.messages
    assert bare(cached.system) == plain.system
    assert marked(cached) == ["system[1]", "messages[0][0]", "messages[1][1]"]
    assert marked(plain) == []


def test_caching_an_empty_session_sets_no_marks() -> None:
    assert wire(caching=True) == ([], [])
    assert marked(wire(user("a"), caching=True)) == ["messages[0][0]"]


# With the types of the SDK


def everything() -> list[Item]:
    return [
        Message("system", "Be terse."),
        Compaction("Before."),
        Message(
            "user", ["Look", Image(data=PNG), Image(url="https://example.org/a.png"), Image(file_id="f"), Document(text="d", title="t")]
        ),
        Reasoning("hm", "s"),
        Reasoning(data="x"),
        assistant("On it."),
        call("c1", '{"a": {"b": [1]}}'),
        call("c2", "oops"),
        output("c1", ["Look:", Image(data=PNG), Document(data=PDF)]),
        output("c2", "", is_error=True),
        call("c3"),
        user("Well?"),
    ]


@pytest.mark.parametrize("caching", [False, True])
def test_the_payload_matches_the_sdk_types(caching: bool) -> None:
    from anthropic import types
    from anthropic.types import beta
    from pydantic import TypeAdapter

    # Uploaded files were a beta before version 1.0 of the SDK.
    message: Any = types.MessageParam if hasattr(types, "FileImageSourceParam") else beta.BetaMessageParam

    def taken(checked: Any) -> Any:
        """Return a copy with lists for pydantic's lazy iterators, which check their members when they are read."""
        if isinstance(checked, dict):
            return {key: taken(member) for key, member in checked.items()}
        return [taken(member) for member in checked] if isinstance(checked, Iterable) and not isinstance(checked, str) else checked

    messages, system = wire(*everything(), caching=caching)
    assert taken(TypeAdapter(list[message]).validate_python(copy.deepcopy(messages))) == messages
    assert TypeAdapter(str | list[types.TextBlockParam]).validate_python(system) == system


@pytest.mark.parametrize(("part", "note"), [(Image(file_id=""), "[image empty]"), (Document(file_id=""), "[document empty]")])
def test_a_file_without_an_id_becomes_a_note(part: Image | Document, note: str) -> None:
    session = Session([Message("user", (part,))])
    assert session.to_anthropic_messages().messages == [{"role": "user", "content": [{"type": "text", "text": note}]}]
