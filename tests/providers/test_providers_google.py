"""Sessions written as Gemini's contents, part by part, and read back."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session import (
    AgentConfigUpdate,
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
)
from session.items import Item
from session.providers import validate_google
from session.providers.additions import CLOSING, FAILED, INTERRUPTED, PREAMBLE, summary_text
from session.providers.google import GoogleContents, from_google, to_google
from session.providers.google.signatures import DUMMY
from tests.support.any_logs import logs
from tests.support.pictures import encoded, heic, pdf
from tests.support.saying import assistant, call, output, user
from tests.support.strategies import sessions

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
HEIC = heic()
PDF = pdf()
SEALED = "QUJD"


def wire(*items: Item, **options: Any) -> GoogleContents:
    """Return the payload of these items. Check that it is valid JSON, that the log does not change, and that it survives a round trip."""
    session = Session(items)
    before = json.dumps(session.to_dict())
    payload = to_google(session, **options)
    assert validate_google(payload) == []
    json.dumps(payload, allow_nan=False).encode()
    assert json.dumps(session.to_dict()) == before
    assert to_google(from_google(*payload)) == payload
    return payload


def parts(*items: Item, **options: Any) -> list[list[dict[str, Any]]]:
    return [content["parts"] for content in wire(*items, **options).contents]


def outline(*items: Item) -> list[str]:
    """Return a line for each content: the first letter of its role, then each part as its text, id or kind."""

    def shown(part: dict[str, Any]) -> str:
        kind = next(iter(part))
        return str(part[kind] if kind == "text" else part[kind].get("id", kind))

    return [f"{content['role'][0]}: " + " ".join(map(shown, content["parts"])) for content in wire(*items).contents]


def back(*items: Item) -> list[Item]:
    return list(from_google(*wire(*items)).items)


def contents_of(items: list[Item]) -> list[tuple[Any, ...]]:
    """Return the contents of items, without their ids and times."""
    rows: list[tuple[Any, ...]] = []
    for item in items:
        if isinstance(item, Message):
            rows.append((item.role, item.content))
        elif isinstance(item, Reasoning):
            rows.append(("reasoning", item.text, item.signature, item.extra))
        elif isinstance(item, FunctionCall):
            rows.append(("call", item.name, json.loads(item.arguments), item.call_id, item.metadata))
        elif isinstance(item, FunctionCallOutput):
            rows.append(("output", item.name, item.output, item.call_id, item.is_error))
        else:
            rows.append((item.type,))
    return rows


# Messages, roles, system


def test_a_session_gives_contents_and_a_system_instruction() -> None:
    payload = wire(Message("system", "Be terse."), user("Hi"), assistant("Hello"))
    assert payload.contents == [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Hello"}]}]
    assert payload.system == {"parts": [{"text": "Be terse."}]}


def test_an_empty_session_gives_an_empty_payload() -> None:
    assert wire() == ([], None)
    assert wire(user(" "), Message("system", "")) == ([], None)


def test_system_messages_become_parts_in_order() -> None:
    payload = wire(Message("system", "One."), user("Hi"), Message("developer", ["Two.", Image(data=PNG)]), assistant("Hello"))
    assert payload.system == {"parts": [{"text": "One."}, {"text": "Two."}, {"text": "[image not shown]"}]}


def test_the_closing_line_of_an_earlier_request_stays() -> None:
    items = user("a"), assistant("c"), Message("system", "!"), assistant("d")
    assert outline(*items[:3]) == ["u: a", "m: c", f"u: {CLOSING}"]
    assert outline(*items) == ["u: a", "m: c", f"u: {CLOSING}", "m: d"]


def test_config_updates_and_blank_texts_are_not_sent() -> None:
    assert outline(user("a"), AgentConfigUpdate("Be b."), assistant(" \n"), Message("user", ["", "b"])) == ["u: a b"]


@pytest.mark.parametrize("head", [assistant("b"), call("c1"), Compaction("All."), assistant("s", extra={"summary": True}), Reasoning("hm")])
def test_the_preamble_is_added_when_the_first_message_is_not_the_users(head: Item) -> None:
    payload = wire(AgentConfigUpdate("Be x."), user(" "), head, user("Go on"))
    assert (payload.contents[0]["role"], payload.contents[0]["parts"][0]) == ("user", {"text": PREAMBLE})
    assert PREAMBLE not in json.dumps(wire(user("Go on"), head).contents)
    assert PREAMBLE not in json.dumps(from_google(*payload).to_dict())


def test_a_log_that_begins_with_a_blank_document_is_valid() -> None:
    assert outline(user(Document(text=" ")), assistant("b"), user("c")) == [f"u: {PREAMBLE}", "m: b", "u: c"]


# Calls and responses


def test_parallel_calls_share_a_content_and_so_do_their_responses_in_order() -> None:
    log = user("a"), assistant("ok"), call("c1"), call("c2"), output("c2", "two"), output("c1", "one"), user("b")
    assert outline(*log) == ["u: a", "m: ok c1 c2", "u: c1 c2 b"]
    responses = [part["function_response"]["response"] for part in parts(*log)[2][:2]]
    assert responses == [{"output": "one"}, {"output": "two"}]


def test_interrupted_steps_are_read_back_as_two() -> None:
    items: list[Item] = [user("a"), call("c1"), call("c2")]
    view = Session.showing(Session(), items, breaks=frozenset({items[2].id}), settled=0)
    payload = to_google(view)
    assert validate_google(payload) == []
    assert [len(content["parts"]) for content in payload.contents] == [1] * 5
    returned = from_google(*payload)
    assert contents_of(list(returned.items)) == contents_of(items)
    assert to_google(returned) == payload


def test_a_call_after_another_agents_text_shares_its_content() -> None:
    assert outline(user("a"), assistant("b", agent_id="x"), call("c1", agent_id="y"), output("c1")) == ["u: a", "m: b c1", "u: c1"]


def test_a_call_without_an_output_is_interrupted() -> None:
    log = user("a"), call("c1"), call("c2"), output("c2"), user("b")
    assert parts(*log)[2][0] == {"function_response": {"id": "c1", "name": "run", "response": {"error": INTERRUPTED}}}
    assert [item.call_id for item in back(*log) if isinstance(item, FunctionCallOutput)] == ["c2"]


def test_error_outputs_are_marked_and_never_empty() -> None:
    log = user("a"), call("c1"), call("c2"), output("c1", "no", is_error=True), output("c2", " ", is_error=True)
    assert [part["function_response"]["response"] for part in parts(*log)[2]] == [{"error": "no"}, {"error": FAILED}]
    assert [item.is_error for item in back(*log) if isinstance(item, FunctionCallOutput)] == [True, True]


def test_an_output_that_imitates_an_addition_is_kept() -> None:
    returned = back(user("a"), call("c1"), output("c1", INTERRUPTED), user(f"{PREAMBLE}"))
    assert [item.text for item in returned if isinstance(item, FunctionCallOutput | Message)] == ["a", INTERRUPTED, PREAMBLE]


@pytest.mark.parametrize("call_id", ["", "fc|1", "é", "a b", "x" * 300])
def test_call_ids_are_made_safe_and_unique(call_id: str) -> None:
    payload = parts(user("a"), call(call_id), output(call_id), call(call_id), output(call_id))
    ids = [payload[index][0]["function_call"]["id"] for index in (1, 3)]
    assert len({*ids}) == 2
    assert ids == [payload[index][0]["function_response"]["id"] for index in (2, 4)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fs.read", "fs.read"), ("a b", "a_b"), ("", "tool"), ("7z", "_7z"), ("n" * 300, "n" * 128), ("-" * 200, "_" + "-" * 127)],
)
def test_invalid_tool_names_are_made_safe_in_calls_and_responses(name: str, expected: str) -> None:
    wire_parts = parts(user("a"), call("c1", name=name), output("c1"))
    assert wire_parts[1][0]["function_call"]["name"] == wire_parts[2][0]["function_response"]["name"] == expected


@pytest.mark.parametrize(("arguments", "expected"), [("", {}), ('{"a": [1]}', {"a": [1]}), ("ls -l", {"arguments": "ls -l"})])
def test_arguments_are_an_object(arguments: str, expected: dict[str, Any]) -> None:
    assert parts(user("a"), call("c1", arguments))[1][0]["function_call"]["args"] == expected


# Signatures and thoughts


def test_a_call_keeps_its_signature_and_the_first_without_one_gets_the_dummy() -> None:
    log = user("a"), call("c1", metadata={"thought_signature": SEALED}), call("c2"), user("b"), call("c3"), call("c4")
    assert [[part.get("thought_signature") for part in content] for content in parts(*log)] == [
        [None],
        [SEALED, None],
        [None, None, None],
        [DUMMY, None],
        [None, None],
    ]
    returned = [item.metadata for item in back(*log) if isinstance(item, FunctionCall)]
    assert returned == [{"thought_signature": SEALED}, {}, {}, {}]


def test_signatures_can_be_passed_by_call_id() -> None:
    log = user("a"), call("c1", metadata={"thought_signature": SEALED}), call("c2"), output("c1"), output("c2")
    wire_parts = parts(*log, thought_signatures={"c1": "WFla", "c2": b"xyz"})[1]
    assert [part["thought_signature"] for part in wire_parts] == ["WFla", "eHl6"]


@pytest.mark.parametrize("damaged", ["", "a", "§", "QR==", "+-__", 7, None, "A" * 5])
def test_a_signature_that_is_not_base64_counts_as_missing(damaged: Any) -> None:
    assert parts(user("a"), call("c1", metadata={"thought_signature": damaged}))[1][0]["thought_signature"] == DUMMY


def test_only_thoughts_that_gemini_signed_are_sent() -> None:
    log = (
        user("a"),
        Reasoning("ours", SEALED, extra={"provider": "google"}),
        Reasoning("unsigned", extra={"provider": "google"}),
        Reasoning("claude's", SEALED),
        Reasoning("gpt's", SEALED, extra={"provider": "openai"}),
        assistant("b"),
        Reasoning("last", SEALED, extra={"provider": "google"}),
    )
    assert parts(*log)[1] == [{"text": "ours", "thought": True, "thought_signature": SEALED}, {"text": "b"}]
    assert contents_of(back(*log))[1] == ("reasoning", "ours", SEALED, {"provider": "google"})


def test_a_text_keeps_its_signature_on_its_last_part_even_if_that_is_empty() -> None:
    signed = {"thought_signature": SEALED}
    assert parts(user("a"), assistant(["b", "c"], extra=signed))[1] == [{"text": "b"}, {"text": "c", **signed}]
    assert parts(user("a"), assistant(["b", ""], extra=signed))[1] == [{"text": "b"}, {"text": "", **signed}]
    assert parts(user("a"), assistant("", extra=signed))[1] == [{"text": "", **signed}]
    assert parts(user("a"), assistant(Document(text=" "), extra=signed))[1] == [{"text": "", **signed}]
    rows = [
        (item.text, item.extra) for item in back(user("a"), assistant(["b", ""], extra=signed), assistant("c")) if isinstance(item, Message)
    ]
    assert rows == [("a", {}), ("b\n", signed), ("c", {})]


# Images and documents


def test_images_and_documents_are_sent_from_every_source() -> None:
    sources = [
        Image(data=PNG, media_type="image/jpeg"),
        Image(data=HEIC),
        Image(url="https://example.org/a.png?x=1"),
        Image(url="gs://bucket/a", media_type="image/webp"),
        Image(url="https://example.org/a"),
        Image(file_id="files/1"),
        Document(data=PDF, title="Bill"),
        Document(text="plain"),
        Document(data=b"RIFF", media_type="audio/wav"),
        Document(url="https://example.org/a.pdf"),
    ]
    png, pdf = base64.b64encode(PNG).decode(), base64.b64encode(PDF).decode()
    assert parts(user(sources))[0] == [
        {"inline_data": {"mime_type": "image/png", "data": png}},
        {"inline_data": {"mime_type": "image/heic", "data": base64.b64encode(HEIC).decode()}},
        {"file_data": {"file_uri": "https://example.org/a.png?x=1", "mime_type": "image/png"}},
        {"file_data": {"file_uri": "gs://bucket/a", "mime_type": "image/webp"}},
        {"file_data": {"file_uri": "https://example.org/a"}},
        {"file_data": {"file_uri": "https://generativelanguage.googleapis.com/v1beta/files/1"}},
        {"inline_data": {"mime_type": "application/pdf", "data": pdf}},
        {"inline_data": {"mime_type": "text/plain", "data": base64.b64encode(b"plain").decode()}},
        {"inline_data": {"mime_type": "audio/wav", "data": base64.b64encode(b"RIFF").decode()}},
        {"file_data": {"file_uri": "https://example.org/a.pdf", "mime_type": "application/pdf"}},
    ]
    (message,) = back(user(sources))
    assert isinstance(message, Message)
    assert message.content[1] == Image(data=HEIC, media_type="image/heic")
    assert message.content[7] == Document(text="plain", media_type="text/plain")


@pytest.mark.parametrize(
    ("part", "note"),
    [
        (Image(data=encoded("GIF", mode="L")), "[image of unknown format: image/gif]"),
        (Image(data=b"GIF89a\x02\0\x02\0"), "[image damaged: its content cannot be decoded]"),
        (Document(data=PDF[:-20]), "[document damaged: it ends in the middle]"),
        (Image(data=b"?"), "[image of unknown format]"),
        (Image(data=b""), "[image empty]"),
        (Image(file_id="file_1"), "[image out of reach: file_1]"),
        (Document(file_id="file_1"), "[document out of reach: file_1]"),
        (Image(path="/no/such/file"), "[image missing: /no/such/file]"),
        (Document(data=b"\xd0\xcf", title="Old.doc"), "[document not shown: Old.doc]"),
        (Document(data=b" ", media_type="text/plain"), "[document not shown]"),
    ],
)
def test_content_that_gemini_does_not_take_becomes_a_note(part: Image | Document, note: str) -> None:
    assert parts(user(part)) == [[{"text": note}]]


def test_outputs_hold_images_and_pdfs_and_the_rest_as_text() -> None:
    outputs = [
        "Look:",
        Image(data=PNG),
        Document(data=PDF),
        Document(text="d"),
        Image(data=HEIC),
        Image(url="https://example.org/a.png"),
        Image(data=b"?"),
    ]
    response = parts(user("a"), call("c1"), output("c1", outputs))[2][0]["function_response"]
    assert response["response"] == {
        "output": "Look:\nd\n[image not shown]\n[image at https://example.org/a.png]\n[image of unknown format]"
    }
    assert [part["inline_data"]["mime_type"] for part in response["parts"]] == ["image/png", "application/pdf"]


def test_the_models_contents_hold_only_images_that_gemini_made() -> None:
    assert parts(user("a"), assistant(["b", Image(data=PNG)]))[1] == [{"text": "b"}, {"text": "[image not shown]"}]
    outputs = from_google([{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [inline := _inline(), {"text": "b"}]}])
    assert to_google(outputs).contents[1]["parts"] == [inline, {"text": "b"}]


def _inline() -> dict[str, Any]:
    return {"inline_data": {"mime_type": "image/png", "data": base64.b64encode(PNG).decode()}, "thought_signature": SEALED}


# Reading


def test_items_that_the_format_can_hold_survive_a_round_trip() -> None:
    log: list[Item] = [
        Message("system", "One."),
        Message("system", "Two."),
        user(["Look", Image(data=PNG, media_type="image/png")]),
        Reasoning("hm", SEALED, extra={"provider": "google"}),
        assistant("On it."),
        call("c1", '{"a": 1}', metadata={"thought_signature": SEALED}),
        call("c2"),
        output("c1", ["Look:", Image(data=PNG, media_type="image/png")]),
        output("c2", "no", is_error=True),
        user("Well?"),
        call("c3"),
        output("c3"),
        assistant("Done."),
    ]
    assert contents_of(back(*log)) == contents_of(log)
    assert [item.id for item in back(*log)][:5] == ["s", "s.1", "m0", "m1", "m1.1"]
    assert {item.created_at for item in back(*log)} == {0.0}


def test_rest_and_sdk_objects_are_read_like_dicts() -> None:
    from google.genai import types

    rest = [
        {"role": "user", "parts": [{"text": "a"}, {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "run", "args": {"a": 1}}, "thoughtSignature": SEALED}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "run", "response": {"output": "x"}}}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "b"}]},
    ]
    system: Any = {"parts": [{"text": "Be terse."}]}
    restored = from_google(rest, system)
    assert [item.call_id for item in restored.items if isinstance(item, FunctionCall | FunctionCallOutput)] == ["call_1_0", "call_1_0"]
    objects = [types.Content.model_validate(content) for content in rest]
    assert from_google(objects, types.Content.model_validate(system)).to_dict()["items"] == restored.to_dict()["items"]
    assert from_google(rest, "Be terse.").to_dict()["items"] == restored.to_dict()["items"]
    assert from_google(rest, ["Be terse."]).to_dict()["items"] == restored.to_dict()["items"]


def test_bytes_and_the_decoded_dummy_are_read_too() -> None:
    model = [
        {"function_call": {"name": "run"}, "thought_signature": signature}
        for signature in (DUMMY.encode(), base64.b64decode(DUMMY, b"-_"), b"x")
    ]
    restored = from_google(["a", {"role": "model", "parts": model}, {"parts": [{"inline_data": {"mime_type": "image/png", "data": PNG}}]}])
    assert [item.metadata for item in restored.items if isinstance(item, FunctionCall)] == [{}, {}, {"thought_signature": "eA=="}]
    assert restored.items[-1] == Message("user", Image(data=PNG, media_type="image/png"), id="m2", created_at=0)


def test_parts_without_an_equivalent_are_carried() -> None:
    code = [{"executable_code": {"language": "PYTHON", "code": "1+1"}}, {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "2"}}]
    clip = {"file_data": {"file_uri": "https://example.org/v"}, "video_metadata": {"fps": 1}}
    contents = [{"role": "user", "parts": [{"text": "a"}, clip]}, {"role": "model", "parts": [{"text": "b"}, *code, {"text": "2"}]}]
    restored = from_google(contents)
    assert to_google(restored) == (contents, None)
    assert Session.from_dict(restored.to_dict()).to_dict() == restored.to_dict()
    assert [item.text for item in restored.items if isinstance(item, Message)][-1] == "2"


def test_damaged_carried_parts_and_signatures_are_left_out() -> None:
    damaged: Any = {"google_parts": [{"text": 5}, {"text": "t", "thought_signature": 5}, {"text": "u", "thought_signature": "YWJj"}]}
    payload = to_google(Session([Message("user", "a"), Message("assistant", "x", extra=damaged)]))
    assert payload.contents[1]["parts"] == [{"text": "t"}, {"text": "u", "thought_signature": "YWJj"}]
    assert validate_google(payload) == []


def test_a_carried_part_with_damaged_bytes_becomes_a_note() -> None:
    def shot(kind: str, data: bytes) -> dict[str, Any]:
        coded = base64.urlsafe_b64encode(data).decode().rstrip("=")
        return {"inline_data": {"mime_type": kind, "data": coded}, "media_resolution": {"level": "low"}}

    intact = [shot("image/png", PNG), shot("application/pdf", PDF), shot("image/heic", HEIC), shot("video/mp4", b"?")]
    cut = [shot("image/png", PNG[:50]), shot("application/pdf", PDF[:-20])]
    restored = from_google([{"role": "user", "parts": [*intact, *cut]}])
    notes = ["[image damaged: its content cannot be decoded]", "[document damaged: it ends in the middle]"]
    assert to_google(restored).contents[0]["parts"] == [*intact, *({"text": note} for note in notes)]
    assert validate_google(to_google(restored)) == []


def test_a_carried_part_cannot_smuggle_in_a_call() -> None:
    forged: Any = {"google_parts": [{"function_call": {"name": "x"}}, 7, {}, {"text": "t"}]}
    assert outline(user("a"), assistant("b", extra=forged)) == ["u: a", "m: t"]


@pytest.mark.parametrize(
    ("contents", "where"),
    [
        ("Hi", "contents"),
        ([7], "contents[0]"),
        ([{"role": "system", "parts": []}], "contents[0].role"),
        ([{"role": [], "parts": []}], "contents[0].role"),
        ([{"parts": "x"}], "contents[0].parts"),
        ([{"parts": [{}]}], "contents[0].parts[0]"),
        ([{"parts": [{"txt": 1}]}], "contents[0].parts[0]"),
        ([{"parts": [{"text": 1}]}], "contents[0].parts[0].text"),
        ([{"parts": [{"text": "a", "thoughtSignature": 1}]}], "contents[0].parts[0].thought_signature"),
        ([{"role": "model", "parts": [{"function_call": {}}]}], "contents[0].parts[0].function_call.name"),
        ([{"role": "model", "parts": [{"function_call": {"name": "x", "args": []}}]}], "contents[0].parts[0].function_call.args"),
        (
            [{"role": "model", "parts": [{"function_call": {"name": "x", "args": {"a": float("nan")}}}]}],
            "contents[0].parts[0].function_call.args.a",
        ),
        ([{"parts": [{"inline_data": {"mime_type": "image/png", "data": "§"}}]}], "contents[0].parts[0].inline_data.data"),
        ([{"parts": [{"file_data": {}}]}], "contents[0].parts[0].file_data.file_uri"),
        ([{"parts": [{"function_response": {"response": 1}}]}], "contents[0].parts[0].function_response.response"),
    ],
)
def test_an_invalid_content_is_an_error_that_names_the_place(contents: Any, where: str) -> None:
    with pytest.raises(FormatError) as caught:
        from_google(contents)
    assert caught.value.where == where


# Every log


@st.composite
def signed_logs(draw: st.DrawFn) -> Session:
    """Random logs in which some calls, texts and thoughts carry signatures, damaged ones included."""
    session = draw(logs())
    signature = st.sampled_from([None, None, SEALED, "-_8", DUMMY, "§"])
    items: list[Item] = []
    for item in session.items:
        changed: Item = item
        key = draw(signature)
        if isinstance(changed, FunctionCall):
            changed = replace(changed, metadata={"thought_signature": key})
        elif isinstance(changed, Message):
            changed = replace(
                changed, extra={**changed.extra, "thought_signature": key, "provider": draw(st.sampled_from(["google", "x"]))}
            )
        elif isinstance(changed, Reasoning):
            changed = replace(changed, signature=key, extra={"provider": draw(st.sampled_from(["google", "openai"]))})
        items.append(changed)
    return Session.showing(session, items, breaks=session.response_breaks, settled=0)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(sessions())
def test_every_payload_matches_the_sdk_types(session: Session) -> None:
    from google.genai import types

    payload = to_google(session)
    for content in payload.contents:
        checked = types.Content.model_validate(content)
        assert len(checked.parts or []) == len(content["parts"])
    if payload.system is not None:
        types.Content.model_validate(payload.system)


def test_the_sdk_does_not_change_bytes_and_signatures() -> None:
    from google.genai import types

    log = user(["a", Image(data=PNG)]), call("c1"), output("c1", Image(data=PNG)), call("c2", metadata={"thought_signature": SEALED})
    contents = [types.Content.model_validate(content) for content in wire(*log).contents]
    wire_parts = [part for content in contents for part in content.parts or []]
    blobs = [part.inline_data for part in wire_parts]
    blobs += [inner.inline_data for part in wire_parts if part.function_response for inner in part.function_response.parts or []]  # type: ignore[misc]
    assert [blob.data for blob in blobs if blob] == [PNG, PNG]
    assert json.loads(contents[1].model_dump_json(exclude_none=True))["parts"][0]["thought_signature"] == DUMMY
    assert [part.thought_signature for part in wire_parts if part.function_call] == [base64.urlsafe_b64decode(DUMMY), b"ABC"]


def test_a_summary_is_sent_as_its_text() -> None:
    assert outline(Compaction("All."), assistant("Yes.")) == [f"u: {PREAMBLE} {summary_text('All.')}", "m: Yes."]
    returned = back(Compaction("All."), assistant("Yes."))
    assert contents_of(returned) == [("compaction",), ("user", (Text(summary_text("All.")),)), ("assistant", (Text("Yes."),))]
