"""Sessions written as Chat Completions messages, message by message, and read back."""

from __future__ import annotations

import base64
import json
import random
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import AgentConfigUpdate, Compaction, Document, FormatError, FunctionCallOutput, Image, Message, Reasoning, Session, Text
from session.items import Item, Role
from session.parts import Part
from session.providers import validate_openai_chat
from session.providers.additions import ATTACHED, ELSEWHERE, INTERRUPTED, summary_text
from session.providers.openai_chat import content, from_openai_chat, to_openai_chat
from session.providers.openai_chat.content import STRING_LENGTH
from tests.support.pictures import pdf, png
from tests.support.saying import assistant, call, comparable, data_url, output, user
from tests.support.shared import TRANSCRIPTS, needs_transcripts

Json = dict[str, Any]


PNG = png(2, 2)
PDF = pdf()


def wire(*items: Item, **options: Any) -> list[Json]:
    """Return the payload of these items. Check that it is valid JSON, that the log does not change, and that it survives a round trip."""
    session = Session(items)
    before = json.dumps(session.to_dict())
    payload = to_openai_chat(session, **options)
    assert validate_openai_chat(payload) == []
    json.dumps(payload, allow_nan=False).encode()
    assert json.dumps(session.to_dict()) == before
    assert to_openai_chat(from_openai_chat(payload)) == payload
    return payload


def outline(messages: list[Json]) -> list[str]:
    """Return a line for each message: the first letter of its role, its text or the types of its parts, the ids of its calls."""

    def shown(content: Any) -> str:
        if isinstance(content, str) or content is None:
            return content or ""
        return " ".join(part.get("text") or part["type"] for part in content)

    return [
        " ".join(
            filter(
                None,
                [
                    f"{message['role'][0]}:",
                    message.get("tool_call_id"),
                    shown(message["content"]),
                    *(item["id"] for item in message.get("tool_calls", [])),
                ],
            )
        )
        for message in messages
    ]


# Writing


def test_a_session_gives_messages() -> None:
    assert wire(Message("system", "Be terse."), user("Hi"), assistant("Hello")) == [
        {"role": "system", "content": "Be terse."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
    ]
    assert wire() == []


def test_system_messages_keep_their_place_and_become_the_developers_for_reasoning_models() -> None:
    log = Message("system", "a"), user("b"), Message("developer", "c"), Message("system", "d"), assistant("e")
    assert outline(wire(*log)) == ["s: a", "u: b", "d: c", "s: d", "a: e"]
    assert outline(wire(*log, reasoning_model=True)) == ["d: a", "u: b", "d: c", "d: d", "a: e"]


def test_a_system_message_between_a_call_and_its_output_moves_behind_them() -> None:
    assert outline(wire(call("c1"), Message("system", "!"), output("c1"))) == ["a: c1", "t: c1 done", "s: !"]


def test_texts_and_calls_of_one_response_share_a_message() -> None:
    log = user("a"), assistant("b"), call("c1"), assistant(["c", "d"]), call("c2"), output("c2", "two"), output("c1", "one")
    assert outline(wire(*log)) == ["u: a", "a: b c d c1 c2", "t: c1 one", "t: c2 two"]


def test_steps_and_consecutive_responses_are_not_merged() -> None:
    assert outline(wire(call("c1"), output("c1"), call("c2"), output("c2"))) == ["a: c1", "t: c1 done", "a: c2", "t: c2 done"]
    assert outline(wire(assistant("a", agent_id="x"), assistant("b", agent_id="y"))) == ["a: a", "a: b"]


def test_calls_carry_their_arguments_as_the_model_wrote_them() -> None:
    for arguments, payload in (('{"a": [1]}', '{"a": [1]}'), ("", "{}"), (" \n", "{}"), ('{"a":', '{"a":'), ("ls -l", "ls -l")):
        [message, _] = wire(call("c1", arguments))
        assert message["tool_calls"] == [{"id": "c1", "type": "function", "function": {"name": "run", "arguments": payload}}]
        assert message["content"] is None


def test_a_custom_tool_takes_a_text() -> None:
    [message, _] = wire(call("c1", "*** Begin", "patch", metadata={"openai_type": "custom_tool_call"}))
    assert message["tool_calls"] == [{"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}]


def test_a_call_without_an_output_is_interrupted_and_an_output_without_a_call_left_out() -> None:
    assert outline(wire(user("a"), output("c0"), call("c1"), call("c2"), output("c2"))) == [
        "u: a",
        "a: c1 c2",
        f"t: c1 {INTERRUPTED}",
        "t: c2 done",
    ]


def test_invalid_ids_and_names_are_made_safe_and_unique() -> None:
    log = [item for call_id in ("x" * 90, "x" * 90, "", "fc|1") for item in (call(call_id, name="fs.read" + "n" * 90), output(call_id))]
    messages = wire(*log)
    ids = [message["tool_calls"][0]["id"] for message in messages[::2]]
    assert [message["tool_call_id"] for message in messages[1::2]] == ids == ["x" * 40, "x" * 38 + "_2", "call", "fc_1"]
    assert messages[0]["tool_calls"][0]["function"]["name"] == ("fs_read" + "n" * 90)[:64]


def test_many_calls_are_split_into_messages_each_with_its_results() -> None:
    messages = wire(assistant("a"), *(call(f"c{n}") for n in range(300)), *(output(f"c{n}", f"{n}") for n in range(300)))
    assert [len(message["tool_calls"]) for message in messages if message["role"] == "assistant"] == [128, 128, 44]
    assert [message["content"] for message in messages if message["role"] == "assistant"] == ["a", None, None]
    assert [message["content"] for message in messages if message["role"] == "tool"] == [f"{n}" for n in range(300)]


def test_an_overlong_text_is_split_and_overlong_arguments_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "x" * STRING_LENGTH + "y"
    [message] = to_openai_chat(Session([user(long)]))
    assert [len(part["text"]) for part in message["content"]] == [STRING_LENGTH, 1]
    assert validate_openai_chat([message]) == []
    monkeypatch.setattr(content, "STRING_LENGTH", 4)
    payload = to_openai_chat(
        Session([Compaction("abc"), Message("system", "abcdefghi"), assistant("abcde"), call("c", '{"a": 1}'), output("c", "abcde")])
    )
    assert "".join(part["text"] for part in payload[0]["content"]) == summary_text("abc")
    assert [[part["text"] for part in payload[index]["content"]] for index in (1, 2, 3)] == [
        ["abcd", "efgh", "i"],
        ["abcd", "e"],
        ["abcd", "e"],
    ]
    assert json.loads(payload[2]["tool_calls"][0]["function"]["arguments"]) == {"arguments": "[arguments too long to send]"}


def test_reasoning_and_config_updates_without_instructions_are_not_sent() -> None:
    log = (
        user("a"),
        AgentConfigUpdate(None, ("c",)),
        AgentConfigUpdate(" "),
        Reasoning("d", "s"),
        Reasoning(data="e", extra={"provider": "openai"}),
    )
    assert outline(wire(*log)) == ["u: a"]


def test_a_config_update_comes_after_the_system_messages_at_the_beginning() -> None:
    prompt = Message("system", "p", pinned=True)
    assert outline(wire(prompt, user("a"), AgentConfigUpdate("c"), Message("system", "d"))) == ["s: p", "s: c", "u: a", "s: d"]
    assert outline(wire(user("a"), AgentConfigUpdate("b"), AgentConfigUpdate("c"))) == ["s: c", "u: a"]
    # As in the requests before the second update: that it replaces the first one moves no other message.
    assert outline(wire(AgentConfigUpdate("b"), prompt, user("a"), AgentConfigUpdate("c"))) == ["s: c", "s: p", "u: a"]


def test_blank_texts_are_sent_and_empty_messages_are_not() -> None:
    assert outline(wire(user(""), user([]), assistant(" "), assistant([]), call("c1"), output("c1", []))) == ["u:", "a:   c1", "t: c1"]


def test_a_compaction_is_the_users_text_and_a_blank_one_is_left_out() -> None:
    assert wire(Compaction("All of it."), Compaction(" ")) == [{"role": "user", "content": summary_text("All of it.")}]


def test_a_refusal_is_sent_as_a_refusal_part() -> None:
    [message] = wire(assistant("Well."), assistant("No.", extra={"refusal": True}))
    assert message["content"] == [{"type": "text", "text": "Well."}, {"type": "refusal", "refusal": "No."}]


def test_images_are_sent_as_urls_or_bytes() -> None:
    images = [
        Image(data=PNG, detail="low"),
        Image(url="https://example.org/a.png"),
        Image(url=data_url(PNG)),
        Image(file_id="f"),
        Image(data=b"BM", media_type="image/bmp"),
        Image(path="/no/such/file"),
    ]
    assert wire(user(["See:", *images])) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "See:"},
                {"type": "image_url", "image_url": {"url": data_url(PNG), "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                {"type": "image_url", "image_url": {"url": data_url(PNG)}},
                {"type": "text", "text": "[image not shown]"},
                {"type": "text", "text": "[image of unknown format: image/bmp]"},
                {"type": "text", "text": "[image missing: /no/such/file]"},
            ],
        }
    ]


def test_a_large_image_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = random.Random(1).randbytes(30 * 30 * 3)  # noise, which no format compresses
    rows = b"".join(b"\0" + picture[row * 90 : row * 90 + 90] for row in range(30))
    noisy = png(30, 30, b"\0\0\0").replace(zlib.compress((b"\0" + b"\0\0\0" * 30) * 30), b"")
    body = zlib.compress(rows)
    noisy = noisy[:33] + struct.pack(">I", len(body)) + b"IDAT" + body + struct.pack(">I", zlib.crc32(b"IDAT" + body)) + noisy[-12:]
    monkeypatch.setattr(content, "IMAGE_ENCODED", 2_000)
    [message] = to_openai_chat(Session([user(Image(data=noisy))]))
    assert message["content"] == "[image too large to send: 30x30]"
    monkeypatch.setattr(content, "IMAGE_ENCODED", 10_000)
    assert wire(user(Image(data=noisy)))[0]["content"][0]["image_url"]["url"] == data_url(noisy)


def test_documents_are_sent_as_files_or_texts() -> None:
    documents = [
        Document(data=PDF, title="Bill.pdf"),
        Document(data=PDF),
        Document(file_id="file_1", title="Bill"),
        Document(text="plain", title="notes.txt"),
        Document(data=b"a,b", media_type="text/csv"),
        Document(url="https://example.org/a.pdf", title="Far"),
        Document(data=b"\xd0\xcf\x11\xe0", title="Old.doc"),
        Document(data=b"\xffsound", media_type="audio/wav"),
    ]
    assert wire(user(documents))[0]["content"] == [
        {"type": "file", "file": {"file_data": data_url(PDF, "application/pdf"), "filename": "Bill.pdf"}},
        {"type": "file", "file": {"file_data": data_url(PDF, "application/pdf"), "filename": "document.pdf"}},
        {"type": "file", "file": {"file_id": "file_1"}},
        {"type": "text", "text": "[document: notes.txt]\nplain"},
        {"type": "text", "text": "a,b"},
        {"type": "text", "text": "[document not shown: Far]"},
        {"type": "text", "text": "[document not shown: Old.doc]"},
        {"type": "input_audio", "input_audio": {"data": base64.b64encode(b"\xffsound").decode(), "format": "wav"}},
    ]


def test_images_and_documents_outside_user_messages_become_notes() -> None:
    parts: list[Part] = [Image(data=PNG), Document(data=PDF, title="Bill"), Document(text="plain")]
    roles: tuple[Role, ...] = ("system", "developer", "assistant")
    for role in roles:
        assert outline(wire(Message(role, parts))) == [f"{role[0]}: [image not shown] [document not shown: Bill] plain"]


def test_images_of_outputs_follow_all_outputs_of_the_response() -> None:
    log = call("c1"), call("c2"), output("c1", ["Look:", Image(data=PNG), "!"]), output("c2", Document(data=PDF)), user("b")
    messages = wire(*log)
    assert outline(messages) == [
        "a: c1 c2",
        f"t: c1 Look: {ELSEWHERE} !",
        f"t: c2 {ELSEWHERE}",
        f"u: {ATTACHED} image_url file",
        "u: b",
    ]
    first, second = comparable(from_openai_chat(messages).items)[2:4]
    assert first["output"] == [{"type": "text", "text": "Look:"}, {"type": "image", **IMAGE}, {"type": "text", "text": "!"}]
    assert second["output"] == [{"type": "document", "data": base64.b64encode(PDF).decode(), "media_type": "application/pdf"}]


IMAGE = {"data": base64.b64encode(PNG).decode(), "media_type": "image/png", "width": 2, "height": 2}


# Reading


def test_additions_are_removed_on_the_way_back() -> None:
    session = from_openai_chat(wire(user("a"), call("c1"), assistant("b", agent_id="x"), call("c2"), output("c2", ["!", Image(data=PNG)])))
    assert [item.type for item in session.items] == ["message", "function_call", "message", "function_call", "function_call_output"]
    assert [item.id for item in session.items] == ["m0", "m1", "m3", "m4", "m5"]
    assert [item.created_at for item in session.items] == [0, 1, 2, 3, 4]
    assert session.response_breaks == {"m3", "m4"}


def test_a_tools_text_that_imitates_an_addition_is_kept() -> None:
    log = call("c1"), output("c1", [ELSEWHERE, Image(data=PNG)]), call("c2"), output("c2", ELSEWHERE), user([ATTACHED, "x"])
    messages = wire(*log)
    assert [item.text for item in from_openai_chat(messages).messages()] == [f"{ATTACHED}\nx"]
    assert wire(user(summary_text("Obey.")))[0]["role"] == "user"
    assert from_openai_chat([{"role": "user", "content": summary_text("x")}]).messages()[0].category is user("x").category


def test_requests_tuples_and_sdk_objects_are_read() -> None:
    from openai.types.chat import ChatCompletionMessage

    message = ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}],
        }
    )
    question = {"role": "user", "content": "a"}
    expected = [{"type": "message", "role": "user", "content": [{"type": "text", "text": "a"}]}, comparable([call("c1")])[0]]
    assert comparable(from_openai_chat([question, message]).items) == expected
    assert comparable(from_openai_chat({"model": "m", "messages": (question, message)}).items) == expected


def test_extensions_of_compatible_servers_are_read_and_carried() -> None:
    session = from_openai_chat(
        [
            {"role": "user", "content": "a", "name": "Ann", "cache": True},
            {"role": "assistant", "reasoning_content": "hm", "content": "b", "refusal": "c", "name": "Bo"},
            {"role": "assistant", "content": None, "function_call": {"name": "run", "arguments": "{}"}},
            {"role": "function", "name": "run", "content": "d"},
            {"role": "assistant", "content": None, "audio": {"id": "x"}},
            {"role": "user", "content": [{"type": "image_url", "image_url": "https://example.org/a.png"}]},
            {"role": "user", "content": [{"type": "document_url", "document_url": "https://example.org/a.pdf"}]},
        ]
    )
    assert [type(item).__name__ for item in session.items] == [
        *("Message", "Reasoning", "Message", "Message", "FunctionCall", "FunctionCallOutput", "Message", "Message", "Message")
    ]
    assert session.items[0].extra == {"openai_fields": {"cache": True}, "openai_name": "Ann"}
    assert session.items[1].extra == {"provider": "openai"}
    assert session.items[3].extra == {"refusal": True}
    assert session.items[6].extra == {"openai_fields": {"audio": {"id": "x"}}}
    assert to_openai_chat(session)[0] == {"role": "user", "content": "a", "name": "Ann"}
    assert outline(to_openai_chat(session)) == [
        *("u: a", "a: b refusal", "a: function_run", "t: function_run d", "u: image_url", "u: [document not shown]")
    ]


@pytest.mark.parametrize(
    ("messages", "where"),
    [
        (None, "messages"),
        (7, "messages"),
        ("Hi", "messages"),
        ({"model": "m"}, "messages"),
        (["Hi"], "messages[0]"),
        ([{"content": "Hi"}], "messages[0].role"),
        ([{"role": []}], "messages[0].role"),
        ([{"role": "user", "content": 7}], "messages[0].content"),
        ([{"role": "user", "content": ["Hi"]}], "messages[0].content[0]"),
        ([{"role": "user", "content": [{"type": "video"}]}], "messages[0].content[0].type"),
        ([{"role": "user", "content": [{"type": "text", "text": None}]}], "messages[0].content[0].text"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].image_url"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "detail": "x"}}]}],
            "messages[0].content[0].image_url.detail",
        ),
        ([{"role": "user", "content": [{"type": "file", "file": {}}]}], "messages[0].content[0].file"),
        ([{"role": "user", "content": [{"type": "file", "file": {"file_data": "§"}}]}], "messages[0].content[0].file.file_data"),
        (
            [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "§", "format": "wav"}}]}],
            "messages[0].content[0].input_audio.data",
        ),
        ([{"role": "assistant", "tool_calls": [{"id": "c", "type": "x"}]}], "messages[0].tool_calls[0].type"),
        ([{"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "n"}}]}], "messages[0].tool_calls[0].id"),
        ([{"role": "tool", "content": "x"}], "messages[0].tool_call_id"),
        ([{"role": "user", "content": "x", "more": float("nan")}], "messages[0].more"),
    ],
)
def test_an_invalid_message_is_an_error_with_its_place(messages: object, where: str) -> None:
    with pytest.raises(FormatError) as caught:
        from_openai_chat(messages)
    assert caught.value.where == where


# Every log


HELD: st.SearchStrategy[Part] = st.sampled_from(
    [Text("a"), Text(""), Text("§ \n"), Image(data=PNG, media_type="image/png"), Image(url="https://example.org/a", detail="high")]
)
FILES: st.SearchStrategy[Part] = st.sampled_from([Document(data=PDF, media_type="application/pdf", title="t"), Document(file_id="f")])
RICH: st.SearchStrategy[list[Part]] = st.lists(HELD | FILES, min_size=1, max_size=3)
SPOKEN: st.SearchStrategy[list[Part]] = st.lists(st.sampled_from([Text("x"), Text(" "), Text("y\n")]), min_size=1, max_size=2)


@st.composite
def holdable(draw: st.DrawFn) -> list[Item]:
    """A log that the format can hold: each response is one text and then calls, answered at once or never."""
    items: list[Item] = []
    for step in draw(st.lists(st.sampled_from(["user", "system", "developer", "respond", "respond"]), max_size=8)):
        if step == "respond":
            calls = [
                call(f"c{len(items)}_{n}", draw(st.sampled_from(["{}", '{"a": 1}', "x"])), f"tool_{n}")
                for n in range(draw(st.integers(0, 3)))
            ]
            if not calls or draw(st.booleans()):
                items.append(assistant(draw(SPOKEN)))
            items.extend(calls)
            items.extend(FunctionCallOutput(item.name, draw(RICH), item.call_id) for item in calls if draw(st.integers(0, 4)))
            items.append(user("and then?"))
        else:
            role: Role = step  # type: ignore[assignment]
            items.append(Message(role, draw(RICH if step == "user" else SPOKEN)))
    return items


@given(holdable())
def test_logs_that_the_format_can_hold_survive_a_round_trip(items: list[Item]) -> None:
    """A round trip gives the same items, except ids and times."""
    assert comparable(from_openai_chat(to_openai_chat(Session(items))).items) == comparable(items)


# Recorded requests


@needs_transcripts
def test_recorded_requests_are_valid_and_read_back_unchanged() -> None:
    read_count = 0
    for line in (TRANSCRIPTS / "provider_truth" / "openai_chat.jsonl").read_text("utf-8").splitlines():
        recorded = json.loads(line)
        request = recorded["request"]
        payload = to_openai_chat(from_openai_chat(request))
        assert validate_openai_chat(payload) == []
        assert to_openai_chat(from_openai_chat(payload)) == payload
        if recorded["host"] == "api.openai.com":
            read_count += 1
            assert {violation.rule for violation in validate_openai_chat(request)} <= {"O3"}  # later models take system messages
            assert list(map(_plain, payload)) == list(map(_plain, request["messages"]))
    assert read_count > 100


def _plain(message: Json) -> Json:
    """Return the message with a single text as a string, and without empty fields."""
    content = message.get("content")
    if isinstance(content, list) and len(content) == 1 and content[0]["type"] == "text":
        content = content[0]["text"]
    return {**{key: value for key, value in message.items() if key != "annotations"}, "content": content}
