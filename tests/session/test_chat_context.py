"""`Session.from_dict` reads what VideoSDK's `ChatContext.to_dict` returns."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from session import FormatError, Image, Session
from tests.support.pictures import png


def base(kind: str, id: str, created_at: float = 1.0, agent_id: str | None = None) -> dict[str, Any]:
    return {"type": kind, "id": id, "created_at": created_at, "agent_id": agent_id}


def message(id: str, role: str, content: Any, **fields: Any) -> dict[str, Any]:
    """A message with all fields that `ChatContext.to_dict` writes."""
    none = {"confidence": None, "metrics": None, "audio_instructions": None, "text_instructions": None}
    return base("message", id) | {"role": role, "content": content, "interrupted": False, "extra": {}} | none | fields


def dump() -> dict[str, Any]:
    return {
        "items": [
            message("msg_0", "system", ["Be brief."]),
            message("msg_1", "user", ["What is this?", {"type": "image", "id": "img_1", "image": "https://example.org/a.png"}]),
            base("function_call", "call_1", 2.0, "a")
            | {"name": "look", "arguments": '{"at": 1}', "call_id": "c1", "metadata": {"thought_signature": "AA=="}},
            base("function_call_output", "output_1", 3.0, "a") | {"name": "look", "output": "no", "call_id": "c1", "is_error": True},
            base("agent_handoff", "handoff_1", 4.0, "a") | {"from_agent": "a", "to_agent": "b", "reason": None},
            base("agent_config_update", "cfgupd_1", 5.0) | {"instructions": "Be kind.", "tools": ["look"]},
            message("msg_2", "assistant", "[Conversation Summary]\nAll well.", extra={"summary": True}),
            message("msg_3", "user", ["hm"], interrupted=True, confidence=0.5, metrics={"ttft": 0.1}),
        ]
    }


def test_a_dump_becomes_a_session() -> None:
    session = Session.from_dict(json.loads(json.dumps(dump())))
    assert [item.id for item in session.items] == [item["id"] for item in dump()["items"]]
    assert [item.type for item in session.items] == [item["type"] for item in dump()["items"]]
    system, user, call, output, handoff, config, summary, unclear = session.items
    assert (system.role, system.text, system.created_at) == ("system", "Be brief.", 1.0)  # type: ignore[union-attr]
    assert user.content[1] == Image(url="https://example.org/a.png")  # type: ignore[union-attr]
    assert (call.name, call.arguments, call.call_id, call.agent_id) == ("look", '{"at": 1}', "c1", "a")  # type: ignore[union-attr]
    assert call.metadata == {"thought_signature": "AA=="}  # type: ignore[union-attr]
    assert (output.text, output.is_error, output.created_at) == ("no", True, 3.0)  # type: ignore[union-attr]
    assert (handoff.from_agent, handoff.to_agent, handoff.reason) == ("a", "b", None)  # type: ignore[union-attr]
    assert (config.instructions, config.tools) == ("Be kind.", ("look",))  # type: ignore[union-attr]
    assert summary.is_summary  # type: ignore[union-attr]
    assert unclear.interrupted  # type: ignore[union-attr]
    assert unclear.extra == {"videosdk": {"confidence": 0.5, "metrics": {"ttft": 0.1}}}
    assert Session.from_dict(session.to_dict()).items == session.items
    assert session.to_openai_messages()[1]["content"][0] == {"type": "text", "text": "What is this?"}


def test_images_inline_and_as_objects() -> None:
    """`to_dict` leaves `ImageContent` objects in the content; pydantic writes them as mappings."""

    class ImageContent:
        inference_detail = "high"

        def to_data_url(self) -> str:
            return "data:image/png;base64," + base64.b64encode(png(8, 8)).decode()

    inline = {
        "image": ImageContent().to_data_url(),
        "type": "image",
        "id": "i",
        "inference_detail": "high",
        "encode_options": {"quality": 90},
    }
    for part in (ImageContent(), inline):
        (item,) = Session.from_dict({"items": [message("m", "user", [part])]}).items
        assert item.content == (Image(png(8, 8), media_type="image/png", detail="high"),)  # type: ignore[union-attr]


def test_dumps_of_older_versions_lack_fields() -> None:
    old = {"items": [{"type": "message", "id": "m", "role": "user", "content": "hi"}]}
    (item,) = Session.from_dict(old).items
    assert (item.id, item.agent_id, item.text) == ("m", None, "hi")  # type: ignore[union-attr]
    assert item.created_at > 10**9
    assert Session.from_dict({"items": []}).items == ()


def test_repeated_items_of_a_merge_are_read_once_and_changed_ones_get_an_id() -> None:
    """Their `merge_result` appends a copy with the same id, under another agent."""
    first = message("m", "assistant", ["done"])
    (one, other) = Session.from_dict({"items": [first, dict(first), first | {"agent_id": "b"}]}).items
    assert (one.id, one.agent_id) == ("m", None)
    assert (other.id != "m", other.agent_id) == (True, "b")


@pytest.mark.parametrize(
    ("items", "where"),
    [
        (5, "items"),
        ([5], r"items\[0\]"),
        ([message("m", "user", [5])], r"items\[0\]\.content\[0\]"),
        ([message("m", "user", [{"type": "image", "image": 5}])], r"items\[0\]\.content\[0\]\.image"),
        ([message("m", "user", [{"type": "image", "image": "data:image/png;base64,%%"}])], r"items\[0\]\.content\[0\]\.data"),
        ([message("m", "nobody", ["x"])], r"items\[0\]\.role"),
        ([message("m", "user", ["x"], extra=5)], r"items\[0\]\.extra"),
        ([{"type": "message", "role": "user", "content": ["x"]}], r"items\[0\]\.id"),
        ([base("thought", "t")], r"items\[0\]\.type"),
        ([base("function_call", "c") | {"name": "f"}], r"items\[0\]\.(arguments|call_id)"),
    ],
    ids=range(10),
)
def test_damaged_dumps_are_refused_with_their_place(items: Any, where: str) -> None:
    with pytest.raises(FormatError, match=rf"^{where}: "):
        Session.from_dict({"items": items})


def test_a_saved_session_without_its_version_is_not_taken_for_one() -> None:
    with pytest.raises(FormatError, match=r"^version"):
        Session.from_dict({"id": "s", "items": []})
