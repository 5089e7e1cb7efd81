"""Sessions written as items of the Responses API, item by item, and read back."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session import Compaction, Document, FormatError, FunctionCall, FunctionCallOutput, Image, Message, Reasoning, Session, Text
from session.items import Item, Role
from session.parts import Part
from session.providers import validate_openai_responses
from session.providers.additions import INTERRUPTED
from session.providers.openai_chat import to_openai_chat, validate_openai_chat
from session.providers.openai_chat.content import STRING_LENGTH
from session.providers.openai_responses import from_openai_responses, to_openai_responses
from tests.support.any_logs import logs
from tests.support.pictures import docx, pdf
from tests.support.saying import assistant, call, comparable, data_url, output, user
from tests.support.shared import TRANSCRIPTS, needs_transcripts
from tests.support.strategies import sessions

Json = dict[str, Any]
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
PDF = pdf()
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def thought(text: str = "hm", data: str | None = "sealed", **fields: Any) -> Reasoning:
    return Reasoning(text, data=data, extra={"provider": "openai", **fields})


def checked(session: Session) -> list[Json]:
    """Return the payload of a session. Check that it is valid JSON, that the log does not change, and that it survives a round trip."""
    before = json.dumps(session.to_dict())
    payload = to_openai_responses(session)
    assert validate_openai_responses(payload) == []
    json.dumps(payload, allow_nan=False).encode()
    assert json.dumps(session.to_dict()) == before
    assert to_openai_responses(from_openai_responses(payload)) == payload
    return payload


def wire(*items: Item) -> list[Json]:
    return checked(Session(items))


def outline(items: list[Json]) -> list[str]:
    """Return a line for each item: its type or role, its text or id."""

    def shown(value: Any) -> str:
        return value if isinstance(value, str) else " ".join(part.get("text", part["type"]) for part in value)

    return [
        f"{item['role'][0]}: {shown(item['content'])}"
        if item["type"] == "message"
        else " ".join(filter(None, [item["type"], item.get("call_id") or item.get("id"), shown(item.get("output", ""))]))
        for item in items
    ]


# Writing


def test_a_session_gives_items() -> None:
    assert wire(
        Message("system", "Be terse."), Message("developer", "Be kind."), user("Hi"), assistant("Hello"), Message("system", "!")
    ) == [
        {"type": "message", "role": "system", "content": "Be terse."},
        {"type": "message", "role": "developer", "content": "Be kind."},
        {"type": "message", "role": "user", "content": "Hi"},
        {"type": "message", "role": "assistant", "content": "Hello"},
        {"type": "message", "role": "system", "content": "!"},
    ]
    assert wire() == []


def test_calls_precede_outputs_and_steps_are_not_merged() -> None:
    parallel = user("a"), call("c1"), call("c2"), output("c2", "two"), output("c1", "one")
    assert outline(wire(*parallel)) == [
        *("u: a", "function_call c1", "function_call c2", "function_call_output c1 one", "function_call_output c2 two")
    ]
    assert outline(wire(call("c1"), output("c1"), call("c2"), output("c2"))) == [
        *("function_call c1", "function_call_output c1 done", "function_call c2", "function_call_output c2 done")
    ]


def test_a_call_without_an_output_is_interrupted_and_an_output_without_a_call_left_out() -> None:
    assert outline(wire(output("c0"), call("c1"), assistant("b", agent_id="x"))) == [
        *("function_call c1", f"function_call_output c1 {INTERRUPTED}", "a: b")
    ]


def test_calls_carry_their_arguments_as_the_model_wrote_them() -> None:
    for arguments, payload in (('{"a": [1]}', '{"a": [1]}'), ("", "{}"), ("[", "[")):
        assert wire(call("c|1", arguments, "fs.read" + "n" * 200))[0] == {
            "type": "function_call",
            "call_id": "c_1",
            "name": ("fs_read" + "n" * 200)[:128],
            "arguments": payload,
        }


def test_ids_have_at_most_64_characters_and_are_unique() -> None:
    payload = wire(call("x" * 90), output("x" * 90, "1"), call("x" * 90), output("x" * 90, "2"))
    assert [item["call_id"] for item in payload] == ["x" * 64] * 2 + ["x" * 62 + "_2"] * 2


def test_a_response_of_several_texts_is_several_messages() -> None:
    assert outline(wire(assistant(["a", "", Image(data=PNG)], extra={"openai_phase": "commentary"}), assistant([]))) == [
        *("a: a", "a: ", "a: [image not shown]")
    ]
    assert wire(assistant("a", extra={"openai_phase": "commentary"}))[0]["phase"] == "commentary"
    assert "phase" not in wire(assistant("a", extra={"openai_phase": "x"}))[0]


def test_users_and_outputs_show_images_and_files() -> None:
    parts: list[Part] = [
        Text("See:"),
        Image(data=PNG, detail="low"),
        Image(url="https://example.org/a.png"),
        Image(file_id="f1"),
        Document(data=PDF, title="Bill.pdf"),
        Document(data=PDF),
        Document(data=docx(), media_type=DOCX),
        Document(url="https://example.org/a.pdf"),
        Document(file_id="f2"),
        Document(text="plain"),
        Document(data=b"\xffRIFF", media_type="audio/wav"),
        Image(path="/no/such/file"),
    ]
    content = [
        {"type": "input_text", "text": "See:"},
        {"type": "input_image", "image_url": data_url(PNG), "detail": "low"},
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
        {"type": "input_image", "file_id": "f1", "detail": "auto"},
        {"type": "input_file", "file_data": data_url(PDF, "application/pdf"), "filename": "Bill.pdf"},
        {"type": "input_file", "file_data": data_url(PDF, "application/pdf"), "filename": "document.pdf"},
        {
            "type": "input_file",
            "file_data": data_url(docx(), DOCX),
            "filename": "document.docx",
        },
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
        {"type": "input_file", "file_id": "f2"},
        {"type": "input_text", "text": "plain"},
        {"type": "input_text", "text": "[document not shown]"},
        {"type": "input_text", "text": "[image missing: /no/such/file]"},
    ]
    payload = wire(user(parts), call("c1"), output("c1", parts))
    assert payload[0]["content"] == content
    assert payload[2]["output"] == content


def test_an_overlong_text_is_split() -> None:
    payload = to_openai_responses(Session([user("x" * STRING_LENGTH + "y")]))
    assert [len(part["text"]) for part in payload[0]["content"]] == [STRING_LENGTH, 1]
    assert validate_openai_responses(payload) == []


def test_a_custom_tool_takes_a_text_and_shows_images() -> None:
    log = call("c1", "*** Begin", "patch", metadata={"openai_type": "custom_tool_call"}), output("c1", [Image(data=PNG)])
    assert wire(*log) == [
        {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c1",
            "output": [{"type": "input_image", "image_url": data_url(PNG), "detail": "auto"}],
        },
    ]


# Reasoning


def test_reasoning_is_sent_unchanged_before_its_item() -> None:
    log = (
        user("a"),
        thought(openai_id="rs_1"),
        assistant("b"),
        thought("", openai_id="rs_2", openai_summary=["x", "y"]),
        thought(),
        call("c1"),
    )
    assert wire(*log)[1:6] == [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "sealed", "id": "rs_1"},
        {"type": "message", "role": "assistant", "content": "b"},
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "x"}, {"type": "summary_text", "text": "y"}],
            "encrypted_content": "sealed",
            "id": "rs_2",
        },
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "sealed"},
        {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"},
    ]


@pytest.mark.parametrize(
    "log",
    [
        (Reasoning("hm", "signed"), assistant("b")),
        (Reasoning(data="x", extra={"provider": "google"}), assistant("b")),
        (thought(data=None, openai_id="rs_1"), assistant("b")),
        (assistant("b"), thought()),
        (thought(), user("c"), assistant("b")),
        (thought(), assistant([]), user("c"), assistant("b")),
        (Reasoning("hm", data="x", agent_id="x", extra={"provider": "openai"}), assistant("b", agent_id="y")),
    ],
)
def test_foreign_unsealed_and_trailing_reasoning_is_left_out(log: tuple[Item, ...]) -> None:
    assert {item["type"] for item in wire(user("a"), *log)} == {"message"}


def test_ids_of_reasoning_are_sent_once_and_only_if_valid() -> None:
    ids = ["rs_1", "rs_1", "item_1", "rs_" + "x" * 90, "rs_ü", None, ""]
    payload = wire(*(item for reasoning_id in ids for item in (thought(openai_id=reasoning_id), assistant("b"))))
    assert [item.get("id") for item in payload if item["type"] == "reasoning"] == ["rs_1", None, None, None, None, None, None]


def test_ids_of_messages_and_calls_are_not_sent() -> None:
    log = assistant("a", extra={"openai_id": "msg_1"}), call("c1", metadata={"openai_id": "fc_1"})
    assert [item.get("id") for item in wire(*log)] == [None, None, None]


# Items of other types

SEARCH: Json = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}
RS: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
SHELL: Json = {"type": "shell_call", "call_id": "c1", "id": "sh_1", "action": {"commands": ["ls"]}, "status": "completed"}
SHELL_OUTPUT: Json = {
    "type": "shell_call_output",
    "call_id": "c1",
    "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
}
COMPUTER: Json = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "c2",
    "action": {"type": "screenshot"},
    "pending_safety_checks": [],
    "status": "completed",
}
SCREENSHOT: Json = {
    "type": "computer_call_output",
    "call_id": "c2",
    "output": {"type": "computer_screenshot", "image_url": "https://example.org/s.png"},
}
PATCH: Json = {"type": "apply_patch_call", "call_id": "c3", "status": "completed", "operation": {"type": "delete_file", "path": "a"}}
PATCHED: Json = {"type": "apply_patch_call_output", "call_id": "c3", "status": "completed", "output": "gone"}
LOCAL: Json = {
    "type": "local_shell_call",
    "id": "ls_1",
    "call_id": "c4",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
    "status": "completed",
}
LOCAL_OUTPUT: Json = {"type": "local_shell_call_output", "id": "c4", "output": '"a"'}
ASKED: Json = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "n", "arguments": "{}", "server_label": "s"}
ALLOWED: Json = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
TOOLS: Json = {"type": "additional_tools", "role": "developer", "tools": []}
SEALED: Json = {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"}
HOSTED_TOOLS: Json = {"type": "tool_search_call", "execution": "server", "call_id": None, "arguments": {}, "status": "completed"}
FOUND_TOOLS: Json = {"type": "tool_search_output", "execution": "server", "call_id": None, "tools": [], "status": "completed"}
SAID: Json = {"type": "message", "role": "assistant", "content": "b"}

EVERYTHING: list[Json] = [
    *(TOOLS, SEALED, {"type": "message", "role": "user", "content": "a"}, RS, SEARCH, HOSTED_TOOLS, FOUND_TOOLS, SAID),
    *(SHELL, COMPUTER, SHELL_OUTPUT, SCREENSHOT, PATCH, PATCHED, LOCAL, LOCAL_OUTPUT, ASKED, ALLOWED, SAID),
]


def test_items_of_other_types_survive_a_round_trip() -> None:
    assert checked(from_openai_responses(EVERYTHING)) == EVERYTHING


def test_other_providers_see_client_calls_but_no_sealed_items() -> None:
    payload = to_openai_chat(from_openai_responses(EVERYTHING))
    assert validate_openai_chat(payload) == []
    assert [item["function"]["name"] for message in payload for item in message.get("tool_calls", [])] == [
        *("shell", "computer", "apply_patch", "local_shell", "mcp_approval")
    ]
    assert "web_search" not in json.dumps(payload)


def test_a_pair_with_a_trimmed_output_is_sent_as_a_function_call() -> None:
    session = from_openai_responses([SHELL, SHELL_OUTPUT, COMPUTER, SCREENSHOT])
    items: list[Item] = [
        replace(item, output=(Text("[cleared]"),)) if isinstance(item, FunctionCallOutput) else item for item in session.items
    ]
    assert outline(checked(Session(items))) == [
        *("function_call c1", "function_call_output c1 [cleared]", "function_call c2", "function_call_output c2 [cleared]")
    ]
    assert outline(wire(session.items[0])) == ["function_call c1", f"function_call_output c1 {INTERRUPTED}"]


def test_a_damaged_screenshot_is_sent_as_a_function_output_with_a_note() -> None:
    """A pair goes as it came only where the provider could read its image."""
    intact, cut = ({**SCREENSHOT, "output": {"type": "computer_screenshot", "image_url": data_url(data)}} for data in (PNG, PNG[:50]))
    assert checked(from_openai_responses([COMPUTER, intact])) == [COMPUTER, intact]
    assert outline(checked(from_openai_responses([COMPUTER, cut]))) == [
        *("function_call c2", "function_call_output c2 [image damaged: its content cannot be decoded]")
    ]


def test_a_damaged_image_of_the_provider_is_left_out() -> None:
    for data, goes in ((PNG, True), (PNG[:50], False)):
        generated = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": base64.b64encode(data).decode()}
        payload = checked(from_openai_responses([{"type": "message", "role": "user", "content": "a"}, generated, SAID]))
        assert (generated in payload) is goes
        assert SAID in payload


def test_a_provider_call_is_sent_only_with_its_reasoning() -> None:
    unsealed = {**RS, "encrypted_content": None}
    assert checked(from_openai_responses([unsealed, SEARCH, SAID])) == [SAID]
    assert outline(checked(from_openai_responses([unsealed, SHELL, SHELL_OUTPUT])))[0] == "function_call c1"
    assert checked(from_openai_responses([SEARCH, SAID, SEARCH, SAID])) == [SEARCH, SAID, SAID]  # an id twice is refused
    damaged = Reasoning(data="{", extra={"provider": "openai", "openai_type": "web_search_call"})
    assert wire(thought(), damaged, assistant("b")) == [SAID]


# Reading


def test_fields_are_kept_if_a_session_has_a_place_for_them() -> None:
    session = from_openai_responses(
        [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]},
            {
                "type": "reasoning",
                "id": "rs_2",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "c"}],
                "encrypted_content": "x",
            },
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "incomplete",
                "phase": "final_answer",
                "content": [
                    {"type": "output_text", "text": "d", "annotations": [{"type": "url_citation", "url": "u"}], "logprobs": []},
                    {"type": "refusal", "refusal": "e"},
                ],
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c1",
                "name": "run",
                "arguments": "{}",
                "namespace": "n",
                "status": "completed",
            },
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "f"}]},
        ]
    )
    phase = {"openai_id": "msg_1", "openai_phase": "final_answer"}
    cited = {"content": [{"annotations": [{"type": "url_citation", "url": "u"}]}]}
    assert comparable(session.items) == [
        {"type": "reasoning", "text": "a\n\nb", "extra": {"provider": "openai", "openai_id": "rs_1", "openai_summary": ["a", "b"]}},
        {"type": "reasoning", "text": "c", "data": "x", "extra": {"provider": "openai", "openai_id": "rs_2", "openai_summary": []}},
        *(
            {
                "type": "message",
                "role": "assistant",
                "interrupted": True,
                "content": [{"type": "text", "text": text}],
                "extra": {**phase, "openai_fields": cited, **fields},
            }
            for text, fields in (("d", {}), ("e", {"refusal": True}))
        ),
        {
            "type": "function_call",
            "name": "run",
            "arguments": "{}",
            "call_id": "c1",
            "metadata": {"openai_id": "fc_1", "openai_fields": {"namespace": "n"}},
        },
        {"type": "function_call_output", "name": "run", "call_id": "c1", "output": [{"type": "text", "text": "f"}]},
    ]
    assert [item.id for item in session.items] == ["m0", "m1", "m2", "m2.1", "m3", "m4"]
    assert to_openai_responses(session)[3]["namespace"] == "n"


def test_requests_responses_and_sdk_objects_are_read() -> None:
    from openai.types.responses import ResponseFunctionToolCall

    generated = ResponseFunctionToolCall(type="function_call", call_id="c1", name="run", arguments="{}")
    assert comparable(from_openai_responses([generated]).items) == comparable([call("c1")])
    response = {"object": "response", "instructions": "!", "output": (generated,)}
    assert comparable(from_openai_responses(response).items) == comparable([call("c1")])
    assert comparable(from_openai_responses("Hi").items) == comparable([user("Hi")])
    request_session = from_openai_responses({"model": "m", "instructions": "Be terse.", "input": "Hi"})
    assert comparable(request_session.items) == comparable([Message("system", "Be terse."), user("Hi")])


def test_a_summary_is_read_as_the_users_text() -> None:
    assert from_openai_responses(wire(Compaction("Obey."))).messages()[0].role == "user"


def test_an_unknown_item_is_carried() -> None:
    item = {"type": "dream", "id": "dr_1", "of": ["sheep"]}
    session = from_openai_responses([item, SAID])
    assert to_openai_responses(session) == [item, SAID]
    assert {violation.rule for violation in validate_openai_responses([item])} == {"R0"}


@pytest.mark.parametrize(
    ("items", "where"),
    [
        (None, "input"),
        (7, "input"),
        ({}, "input"),
        ({"input": 7}, "input"),
        (["Hi"], "input[0]"),
        ([{"content": "Hi"}], "input[0].type"),
        ([{"type": []}], "input[0].type"),
        ([{"role": "model", "content": "Hi"}], "input[0].role"),
        ([{"role": "user", "content": 7}], "input[0].content"),
        ([{"role": "user", "content": [{"type": "video"}]}], "input[0].content[0].type"),
        ([{"role": "user", "content": [{"type": "input_image"}]}], "input[0].content[0]"),
        ([{"role": "user", "content": [{"type": "input_file"}]}], "input[0].content[0]"),
        ([{"role": "user", "content": [{"type": "input_image", "file_id": "f", "detail": 7}]}], "input[0].content[0].detail"),
        ([{"type": "function_call", "name": "n", "arguments": "{}"}], "input[0].call_id"),
        ([{"type": "function_call", "call_id": "c", "name": "n", "arguments": {}}], "input[0].arguments"),
        ([{"type": "function_call_output", "output": "x"}], "input[0].call_id"),
        ([{"type": "reasoning", "summary": "x"}], "input[0].summary"),
        ([{"type": "reasoning", "summary": [], "encrypted_content": 7}], "input[0].encrypted_content"),
        ([{"type": "shell_call", "action": {}}], "input[0].call_id"),
        ([{"type": "dream", "of": float("nan")}], "input[0].of"),
    ],
)
def test_an_invalid_item_is_an_error_with_its_place(items: object, where: str) -> None:
    with pytest.raises(FormatError) as caught:
        from_openai_responses(items)
    assert caught.value.where == where


# Every log


def sealed(data: str | None, item_id: str | None) -> Json:
    return {"data": data, "signature": None, "extra": {"provider": "openai", **({"openai_id": item_id} if item_id is not None else {})}}


AS_OURS: st.SearchStrategy[Json] = st.one_of(
    st.builds(sealed, st.sampled_from(["x", "x", None]), st.sampled_from(["rs_1", "rs_2", "rs_3", "other", None])),
    st.builds(
        lambda item: {"data": json.dumps(item), "text": "", "extra": {"provider": "openai", "openai_type": item["type"]}},
        st.sampled_from([SEARCH, {**SEARCH, "id": "ws_2"}, HOSTED_TOOLS]),
    ),
    st.just({}),
)
AS_CALL: st.SearchStrategy[Json] = st.one_of(
    st.just({}),
    st.just({"metadata": {"openai_type": "custom_tool_call"}}),
    st.just({"metadata": {"openai_id": "fc_1", "openai_fields": {"namespace": "n"}}}),
    st.just({"metadata": {"openai_item": SHELL}, "arguments": '{"action":{"commands":["ls"]}}'}),
)
AS_OUTPUT: st.SearchStrategy[Json] = st.one_of(
    st.just({}),
    st.just({"extra": {"openai_item": SHELL_OUTPUT}, "output": from_openai_responses([SHELL, SHELL_OUTPUT]).items[1].output}),  # type: ignore[union-attr]
    st.just({"output": INTERRUPTED}),
)
AS_SYSTEM: st.SearchStrategy[Json] = st.one_of(st.just({}), st.just({}), st.just({"content": (), "extra": {"openai_item": TOOLS}}))


@st.composite
def openai_logs(draw: st.DrawFn) -> Session:
    """A log of any items, many of them as this provider makes them."""
    drawn = draw(st.one_of(sessions(), logs(), logs()))
    items: list[Item] = []
    for item in drawn.items:
        changes: Json = {}
        if isinstance(item, Reasoning):
            changes = draw(AS_OURS)
        elif isinstance(item, FunctionCall):
            changes = draw(AS_CALL)
        elif isinstance(item, FunctionCallOutput):
            changes = draw(AS_OUTPUT)
        elif isinstance(item, Message) and item.role == "system":
            changes = draw(AS_SYSTEM)
        items.append(replace(item, **changes) if changes else item)
    session = Session(items)
    session.restore_seams(drawn.response_breaks, 0)
    return session


PIECES: list[list[Json]] = [
    *(
        [RS],
        [{**RS, "id": "rs_2"}],
        [{"type": "reasoning", "summary": [], "encrypted_content": "x"}],
        [{**RS, "id": "rs_3", "encrypted_content": None}],
    ),
    *([SEARCH], [{**SEARCH, "id": "ws_2"}], [SAID], [HOSTED_TOOLS], [SEALED], [TOOLS], [{"role": "user", "content": "a"}]),
    *(
        [SHELL],
        [SHELL_OUTPUT],
        [SHELL, SHELL_OUTPUT],
        [COMPUTER, SCREENSHOT],
        [PATCH, RS, PATCHED],
        [LOCAL, LOCAL_OUTPUT],
        [ASKED, ALLOWED],
    ),
    [
        {"type": "function_call", "call_id": "c1", "name": "n", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": INTERRUPTED},
    ],
    [
        {"type": "custom_tool_call", "call_id": "c2", "name": "n", "input": ""},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "x"},
    ],
]


@st.composite
def answered_logs(draw: st.DrawFn) -> Session:
    """A log of the provider's own items in any order, or a view of one."""
    least = draw(st.sampled_from([0, 6, 12]))  # without a minimum, Hypothesis makes short ones
    drawn = from_openai_responses(
        [item for piece in draw(st.lists(st.sampled_from(PIECES), min_size=least, max_size=15)) for item in piece]
    )
    dropped = draw(st.sets(st.integers(0, 20), max_size=3))
    items = [item for position, item in enumerate(drawn.items) if position not in dropped]
    session = Session(items)
    breaks = draw(st.sets(st.sampled_from([item.id for item in items]), max_size=2)) if items else set()
    session.restore_seams(frozenset(breaks), 0)
    return session


OUR_LOGS = st.one_of(openai_logs(), answered_logs(), answered_logs())
PATIENT = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@settings(PATIENT, max_examples=50)
@given(OUR_LOGS)
def test_a_session_read_back_is_valid_for_the_other_api(session: Session) -> None:
    assert validate_openai_chat(to_openai_chat(from_openai_responses(to_openai_responses(session)))) == []


SPOKEN: st.SearchStrategy[list[Part]] = st.lists(st.sampled_from([Text("x"), Text(" "), Text("y\n")]), min_size=1, max_size=2)
RICH: st.SearchStrategy[list[Part]] = st.lists(
    st.sampled_from(
        [
            *(
                Text("a"),
                Text(""),
                Image(data=PNG, media_type="image/png"),
                Image(url="https://example.org/a", detail="high"),
                Image(file_id="f"),
            ),
            *(Document(data=PDF, media_type="application/pdf", title="t"), Document(url="https://example.org/a"), Document(file_id="f")),
        ]
    ),
    min_size=1,
    max_size=3,
)


@st.composite
def holdable(draw: st.DrawFn) -> list[Item]:
    """A log that the format can hold: each text of a response is a message, and outputs directly follow their response."""
    items: list[Item] = []
    for step in draw(st.lists(st.sampled_from(["user", "system", "developer", "respond", "respond"]), max_size=8)):
        if step != "respond":
            role: Role = step  # type: ignore[assignment]
            items.append(Message(role, draw(RICH if step == "user" else SPOKEN)))
            continue
        calls: list[FunctionCall] = []
        for kind in draw(st.lists(st.sampled_from("rtc"), min_size=1, max_size=4)):
            if kind == "r":
                items.append(thought(draw(st.sampled_from(["", "hm"])), openai_id=f"rs_{len(items)}"))
            if kind != "c":
                items.append(assistant(draw(st.sampled_from(["", "b\n"]))))
                continue
            custom = {"openai_type": "custom_tool_call"} if draw(st.booleans()) else {}
            calls.append(call(f"c{len(items)}", draw(st.sampled_from(["{}", "x"])), f"tool_{len(items)}", metadata=custom))
            items.append(calls[-1])
        items.extend(FunctionCallOutput(item.name, draw(RICH), item.call_id) for item in calls if draw(st.integers(0, 4)))
        items.append(user("and then?"))
    return items


@given(holdable())
def test_logs_that_the_format_can_hold_survive_a_round_trip(items: list[Item]) -> None:
    """A round trip gives the same items, except ids and times."""
    assert comparable(from_openai_responses(to_openai_responses(Session(items))).items) == comparable(items)


# Recorded requests


@needs_transcripts
def test_recorded_requests_are_valid_before_and_after_a_round_trip() -> None:
    read_count = 0
    for line in (TRANSCRIPTS / "provider_truth" / "openai_responses.jsonl").read_text("utf-8").splitlines():
        recorded = json.loads(line)
        session = from_openai_responses(recorded["request"])
        payload = to_openai_responses(session)
        if not {"previous_response_id", "conversation"} & recorded["request"].keys():
            assert validate_openai_responses(payload) == []
        assert to_openai_responses(from_openai_responses(payload)) == payload
        if recorded["host"] == "api.openai.com":
            read_count += 1
            assert validate_openai_responses(recorded["request"]) == []
            request_session = recorded["request"]["input"]
            lost_reasoning = sum(
                item.get("type") == "reasoning" and not item.get("encrypted_content") for item in request_session if isinstance(item, dict)
            )
            told_first = bool(recorded["request"].get("instructions"))
            if not recorded["request"].get("previous_response_id"):
                assert len(payload) == (1 if isinstance(request_session, str) else len(request_session)) - lost_reasoning + told_first
    assert read_count > 150
