"""Anthropic's cache marks (A7), and the limits of a request: the number of images and their total size (A8)."""

from __future__ import annotations

import copy
from io import BytesIO
from typing import Any

import pytest
from hypothesis import event, given
from PIL import Image as Pillow

from session import Document, FunctionCall, FunctionCallOutput, Image, Message, Reasoning, Session
from session.images import image_size
from session.items import Item
from session.providers import validate_anthropic
from session.providers.anthropic import AnthropicMessages, blocks, from_anthropic, to_anthropic
from session.providers.parsing import expect_base64
from session.units import KIND_CALL, grouping, prompt_text, request_points
from tests.support.pictures import pdf
from tests.support.strategies import sessions

Json = dict[str, Any]


def call(call_id: str) -> FunctionCall:
    return FunctionCall("run", "{}", call_id)


def output(call_id: str) -> FunctionCallOutput:
    return FunctionCallOutput("run", "done", call_id)


def picture(width: int = 2, height: int = 2) -> Image:
    out = BytesIO()
    Pillow.new("RGB", (width, height), (90, 9, 9)).save(out, "PNG")
    return Image(data=out.getvalue())


def in_order(payload: AnthropicMessages) -> list[tuple[str, Json]]:
    """Return every block that may carry a mark, in the order of the prompt, with its role."""
    system = payload.system if isinstance(payload.system, list) else []
    return [("system", block) for block in system] + [(entry["role"], block) for entry in payload.messages for block in entry["content"]]


def bare(payload: AnthropicMessages) -> list[tuple[str, Json]]:
    return [(role, {key: value for key, value in block.items() if key != "cache_control"}) for role, block in in_order(payload)]


def marks(payload: AnthropicMessages) -> list[int]:
    """Return the positions of the marks, counted in blocks."""
    return [index for index, (_, block) in enumerate(in_order(payload)) if "cache_control" in block]


def shown(*items: Item, settled: int = 0) -> AnthropicMessages:
    payload = to_anthropic(Session.showing(Session(), list(items), breaks=frozenset(), settled=settled), caching=True)
    assert validate_anthropic(payload) == []
    return payload


LOG: list[Item] = [
    Message("system", "Be terse."),
    Message("user", "a"),
    Message("assistant", "b"),
    Message("user", ["c", "d"]),
    *[item for n in range(4) for item in (Reasoning("hm", "s"), call(f"c{n}"), output(f"c{n}"))],
]


def test_the_four_marks() -> None:
    payload = shown(*LOG)
    texts = [block.get("text") or block.get("tool_use_id") for _, block in in_order(payload)]
    assert [texts[index] for index in marks(payload)] == ["Be terse.", "d", "c2", "c3"]


def test_marks_inside_carried_blocks_are_not_sent() -> None:
    block = {"type": "text", "text": "x", "citations": [], "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    texts = [Message("assistant", "x", extra={"anthropic_blocks": [block]}), Message("user", "a")]
    assert len(marks(shown(*LOG, *texts))) == 4
    assert not marks(to_anthropic(Session(texts)))


def test_the_mark_of_the_turn_stays_as_the_turn_goes_on() -> None:
    indices = [marks(shown(*LOG[:end]))[1] for end in (10, 13, 16)]
    assert indices == [4, 4, 4]


def test_a_continued_view_has_a_mark_where_it_ended() -> None:
    texts = [block.get("text") or block.get("tool_use_id") for _, block in in_order(shown(*LOG))]
    for settled, at in [(2, "a"), (3, "b"), (6, "d"), (7, "c0"), (9, "c0")]:
        assert texts[marks(shown(*LOG, settled=settled))[1]] == at


def test_a_new_view_has_this_mark_at_its_end() -> None:
    payload = shown(*LOG, settled=len(LOG))
    assert marks(payload)[-1] == len(in_order(payload)) - 1
    assert len(marks(payload)) == 3


def test_without_system_or_an_earlier_request_there_are_fewer_marks() -> None:
    assert marks(shown(Message("user", "a"))) == [0]
    assert marks(shown(Message("system", "s"))) == [0]
    assert marks(shown()) == []


@given(sessions())
def test_the_marked_prefix_of_a_request_begins_the_next(session: Session) -> None:
    """There are at most four marks, each on a block that may carry one. The marked prefix of a request begins the next one."""
    groups, points = grouping(session), request_points(session)
    late = any(
        groups.kind[index] == KIND_CALL and any(index < point <= max(groups.members(groups.head[index])) for point in points)
        for index in range(len(groups))
    )
    instructed = any(prompt_text(item) is not None for item in session.items[points[0] if points else 0 :])
    event(f"an edit: {late or instructed}")
    previous: AnthropicMessages | None = None
    for end in points:
        for settled in {0, end // 2, end}:
            view = Session.showing(session, list(session.items[:end]), breaks=session.response_breaks, settled=settled)
            payload = to_anthropic(view, caching=True)
            assert validate_anthropic(payload) == []
            assert len(marks(payload)) <= 4
            assert all(block["type"] not in ("thinking", "redacted_thinking") for _, block in in_order(payload) if "cache_control" in block)
            plain = to_anthropic(view)
            system = plain.system if not isinstance(plain.system, str) else [{"type": "text", "text": plain.system}]
            assert bare(payload) == bare(AnthropicMessages(plain.messages, system))
            if payload.messages:
                assert marks(payload)[-1] == len(in_order(payload)) - 1
        if previous is not None and marks(previous) and not (late or instructed):
            upto = marks(previous)[-1] + 1
            current, then = bare(payload), bare(previous)[:upto]
            if then[-1][0] == "assistant" and [block["type"] for _, block in current[upto : upto + 1]] == ["thinking"]:
                # A summary right before thinking is the user's. Such a request never existed: with thinking, none may end with the
                # assistant's text. So only the blocks are compared.
                current, then = [[("", block) for _, block in entry] for entry in (current, then)]
            assert current[:upto] == then
            assert upto - 1 in marks(payload) or not previous.messages, "the next request reads from where the last one ended"
        previous = payload


# Limits of a request: A8


def kinds(payload: AnthropicMessages) -> str:
    """Return a letter for each block: "i" for an image, "t" for a text, …"""
    return "".join(block["type"][0] for _, block in in_order(payload))


def whole(session: Session) -> AnthropicMessages:
    payload = to_anthropic(session)
    assert validate_anthropic(payload) == []
    assert to_anthropic(from_anthropic(*payload)) == payload
    return payload


def test_above_a_hundred_images_the_oldest_become_notes_twenty_at_a_time() -> None:
    image = picture()
    session, kinds_before, changes = Session(), "", 0
    for count in range(1, 146):
        session.add_message("user", image)
        if count >= 98:
            kinds_now = kinds(to_anthropic(session))
            changes += not kinds_now.startswith(kinds_before)
            kinds_before = kinds_now
            assert kinds_now.count("i") <= 100
            assert kinds_now.endswith("i" * 80)
    assert changes == 3
    assert kinds(whole(session)) == "t" * 63 + "i" * 82


def test_documents_are_not_dropped_for_the_number_of_images() -> None:
    session = Session([Message("user", [Document(text="d"), *[picture()] * 101])])
    assert kinds(whole(session)) == "d" + "t" * 21 + "i" * 80


def test_images_in_outputs_count_too_and_become_notes_in_place() -> None:
    image = picture()
    looks = [item for n in range(102) for item in (call(f"c{n}"), FunctionCallOutput("run", ["x", image], f"c{n}"))]
    payload = whole(Session([Message("user", "a"), *looks]))
    results = [block["content"] for _, block in in_order(payload) if block["type"] == "tool_result"]
    assert results[0] == [{"type": "text", "text": "x"}, {"type": "text", "text": "[image not shown]"}]
    assert sum(inner["type"] == "image" for content in results for inner in content) == 81


def test_above_twenty_images_and_documents_the_large_ones_are_shrunk() -> None:
    large, other = picture(2400, 4), picture(1999, 4)

    def sizes(session: Session) -> list[tuple[int, int] | None]:
        sources = [block["source"] for _, block in in_order(whole(session)) if block["type"] == "image"]
        return [image_size(expect_base64(source["data"], "")) for source in sources]

    few = Session([Message("user", [large, other, *[Document(text="d")] * 18])])
    assert sizes(few) == [(2400, 4), (1999, 4)]
    few.add_message("user", Document(url="https://example.org/a.pdf"))
    assert sizes(few) == [(2000, 3), (1999, 4)]


def test_images_and_documents_above_the_total_size_are_dropped_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MOST_ENCODED", 4000)
    monkeypatch.setattr(blocks, "LESS_ENCODED", 2000)
    bill = Document(data=pdf(750), title="Bill")  # a thousand characters each
    session, kinds_before, changes = Session(), "", 0
    for _ in range(13):
        session.add_message("user", bill)
        kinds_now = kinds(whole(session))
        changes += not kinds_now.startswith(kinds_before)
        kinds_before = kinds_now
    assert kinds_before == "t" * 9 + "d" * 4
    assert changes == 3
    session.add_message("user", Document(data=pdf(3000)))
    assert kinds(whole(session)) == "t" * 13 + "d"
    session.add_message("user", Document(data=pdf(3001)))
    assert kinds(whole(session)) == "t" * 15


def test_sending_does_not_change_the_session_or_its_blocks() -> None:
    session = Session([Message("user", [picture(2400, 4), *[picture()] * 104])])
    before = copy.deepcopy(session.to_dict())
    first = to_anthropic(session, caching=True)
    assert to_anthropic(session, caching=True) == first
    assert session.to_dict() == before
