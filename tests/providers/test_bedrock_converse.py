"""`Session.from_converse`: messages of Amazon Bedrock's Converse API."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from session import Document, FormatError, FunctionCall, FunctionCallOutput, Image, Message, Reasoning, Session, Text
from session.providers import validate_anthropic
from tests.support.pictures import png

PNG = png(2, 2)


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


CALL = {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Bern"}}}
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "Bern, then.", "signature": "c2ln"}}}
RESULT = {"toolResult": {"toolUseId": "c1", "content": [{"text": "9 degrees"}, {"json": {"wind": 3}}], "status": "success"}}


def test_calls_are_paired_with_their_results_and_reasoning_keeps_its_signature() -> None:
    session = Session.from_converse([user({"text": "Warm?"}), assistant(THOUGHT, {"text": "I look."}, CALL), user(RESULT)], "Be brief.")
    system, question, thought, words, call, output = session.items
    assert [system.type, question.type, words.type] == ["message"] * 3
    assert isinstance(system, Message)
    assert (system.role, system.text) == ("system", "Be brief.")
    assert isinstance(thought, Reasoning)
    assert (thought.text, thought.signature) == ("Bern, then.", "c2ln")
    assert isinstance(call, FunctionCall)
    assert (call.name, call.call_id, call.arguments) == ("weather", "c1", '{"city": "Bern"}')
    assert isinstance(output, FunctionCallOutput)
    assert (output.name, output.call_id, output.is_error) == ("weather", "c1", False)
    assert output.output == (Text("9 degrees"), Text('{"wind": 3}'))
    payload = session.to_anthropic_messages()
    assert validate_anthropic(payload) == []
    assert [block["type"] for message in payload.messages for block in message["content"]] == [
        "text",
        "thinking",
        "text",
        "tool_use",
        "tool_result",
    ]


def test_a_failed_result_is_an_error() -> None:
    failed = {"toolResult": {"toolUseId": "c1", "content": [{"text": "no"}], "status": "error"}}
    assert Session.from_converse([user({"text": "?"}), assistant(CALL), user(failed)]).items[-1].is_error  # type: ignore[union-attr]


@pytest.mark.parametrize("data", [PNG, base64.b64encode(PNG).decode()], ids=["bytes of boto3", "base64 of JSON"])
def test_images_and_documents_are_read(data: Any) -> None:
    source = {"bytes": data}
    [message] = Session.from_converse(
        [
            user(
                {"image": {"format": "png", "source": source}},
                {"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket/a.jpg"}}}},
                {"document": {"format": "pdf", "name": "plan", "source": source}},
                {"document": {"format": "txt", "name": "rules", "source": {"text": "20 days"}, "citations": {"enabled": True}}},
                {"document": {"format": "txt", "name": "list", "source": {"content": [{"text": "a"}, {"text": "b"}]}}},
                {"cachePoint": {"type": "default"}},
            )
        ]
    ).items
    assert isinstance(message, Message)
    assert message.content == (
        Image(PNG, media_type="image/png"),
        Image(url="s3://bucket/a.jpg"),
        Document(PNG, media_type="application/pdf", title="plan"),
        Document(text="20 days", title="rules"),
        Document(text="a\nb", title="list"),
    )


def test_cited_and_guarded_texts_are_texts() -> None:
    cited = {"citationsContent": {"content": [{"text": "20 days."}], "citations": [{"title": "rules"}]}}
    guarded = {"guardContent": {"text": {"text": "How many?", "qualifiers": ["query"]}}}
    question, answer = Session.from_converse([user(guarded), assistant({"text": "There are"}, cited)], [{"text": "s"}]).items[1:]
    assert isinstance(question, Message)
    assert isinstance(answer, Message)
    assert (question.text, answer.content) == ("How many?", (Text("There are"), Text("20 days.")))


def test_redacted_reasoning_is_what_anthropic_sent() -> None:
    redacted = {"reasoningContent": {"redactedContent": base64.b64encode(b"EmwKAhgB").decode()}}
    [thought, _] = Session.from_converse([assistant(redacted, {"text": "a"})]).items
    assert isinstance(thought, Reasoning)
    assert thought.data == "EmwKAhgB"


@pytest.mark.parametrize(
    ("message", "where"),
    [
        (7, r"messages\[0\]"),
        ({"role": "system", "content": []}, r"messages\[0\].role"),
        (user({"type": "text", "text": "a"}), r"messages\[0\].content\[0\]"),
        (user({"video": {"format": "mp4", "source": {}}}), r"messages\[0\].content\[0\].video"),
        (user({"text": 7}), r"messages\[0\].content\[0\].text"),
        (user({"image": {"format": "png", "source": {"bytes": "?"}}}), r"messages\[0\].content\[0\].image.source.bytes"),
        (assistant({"toolUse": {"name": "f", "input": {}}}), r"messages\[0\].content\[0\].toolUse.toolUseId"),
        (user({"toolResult": {"toolUseId": "c"}}), r"messages\[0\].content\[0\].toolResult.content"),
    ],
)
def test_what_is_not_converse_is_refused_with_its_place(message: Any, where: str) -> None:
    with pytest.raises(FormatError, match=where):
        Session.from_converse([message])
