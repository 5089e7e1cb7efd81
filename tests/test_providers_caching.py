"""Cache marks for Anthropic, and what a whole request may hold: how many images, how large together (A7, A8)."""

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
from session.providers.given import some_bytes
from session.units import KIND_CALL, grouping, request_points
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


def in_order(sent: AnthropicMessages) -> list[tuple[str, Json]]:
    """Every block a mark may stand on, in the order of the prompt, with the role it is said in."""
    system = sent.system if isinstance(sent.system, list) else []
    return [("system", block) for block in system] + [(one["role"], block) for one in sent.messages for block in one["content"]]


def bare(sent: AnthropicMessages) -> list[tuple[str, Json]]:
    return [(role, {key: value for key, value in block.items() if key != "cache_control"}) for role, block in in_order(sent)]


def marks(sent: AnthropicMessages) -> list[int]:
    """The places of the marks, counted in blocks."""
    return [place for place, (_, block) in enumerate(in_order(sent)) if "cache_control" in block]


def shown(*items: Item, settled: int = 0) -> AnthropicMessages:
    sent = to_anthropic(Session.showing(Session(), list(items), breaks=frozenset(), settled=settled), caching=True)
    assert validate_anthropic(sent) == []
    return sent


LOG: list[Item] = [
    Message("system", "Be terse."),
    Message("user", "a"),
    Message("assistant", "b"),
    Message("user", ["c", "d"]),
    *[item for n in range(4) for item in (Reasoning("hm", "s"), call(f"c{n}"), output(f"c{n}"))],
]


def test_the_four_marks_are_system_the_turn_the_previous_request_and_this_one() -> None:
    sent = shown(*LOG)
    said = [block.get("text") or block.get("tool_use_id") for _, block in in_order(sent)]
    assert [said[place] for place in marks(sent)] == ["Be terse.", "d", "c2", "c3"]


def test_marks_that_carried_blocks_bring_along_are_not_sent() -> None:
    block = {"type": "text", "text": "x", "citations": [], "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    said = [Message("assistant", "x", extra={"anthropic_blocks": [block]}), Message("user", "a")]
    assert len(marks(shown(*LOG, *said))) == 4
    assert not marks(to_anthropic(Session(said)))


def test_the_mark_of_the_turn_stays_while_steps_follow() -> None:
    places = [marks(shown(*LOG[:end]))[1] for end in (10, 13, 16)]
    assert places == [4, 4, 4]


def test_a_view_that_was_gone_on_with_has_its_mark_where_it_ended() -> None:
    said = [block.get("text") or block.get("tool_use_id") for _, block in in_order(shown(*LOG))]
    for settled, at in [(2, "a"), (3, "b"), (6, "d"), (7, "c0"), (9, "c0")]:
        assert said[marks(shown(*LOG, settled=settled))[1]] == at


def test_a_view_as_it_is_made_has_that_mark_at_its_end() -> None:
    sent = shown(*LOG, settled=len(LOG))
    assert marks(sent)[-1] == len(in_order(sent)) - 1
    assert len(marks(sent)) == 3


def test_without_system_or_an_earlier_request_there_are_fewer_marks() -> None:
    assert marks(shown(Message("user", "a"))) == [0]
    assert marks(shown(Message("system", "s"))) == [0]
    assert marks(shown()) == []


@given(sessions())
def test_what_one_request_marks_is_a_prefix_of_the_next(session: Session) -> None:
    """At most four marks, each on a block that may carry one; and the marked prefix of a request begins the next one."""
    groups, points = grouping(session), request_points(session)
    late = any(
        groups.kind[place] == KIND_CALL and any(place < point <= max(groups.members(groups.head[place])) for point in points)
        for place in range(len(groups))
    )
    instructed = any(isinstance(item, Message) and item.role == "system" for item in session.items[points[0] if points else 0 :])
    event(f"an edit: {late or instructed}")
    previous: AnthropicMessages | None = None
    for end in points:
        for settled in {0, end // 2, end}:
            view = Session.showing(session, list(session.items[:end]), breaks=session.response_breaks, settled=settled)
            sent = to_anthropic(view, caching=True)
            assert validate_anthropic(sent) == []
            assert len(marks(sent)) <= 4
            assert all(block["type"] not in ("thinking", "redacted_thinking") for _, block in in_order(sent) if "cache_control" in block)
            plain = to_anthropic(view)
            system = plain.system if not isinstance(plain.system, str) else [{"type": "text", "text": plain.system}]
            assert bare(sent) == bare(AnthropicMessages(plain.messages, system))
            if sent.messages:
                assert marks(sent)[-1] == len(in_order(sent)) - 1
        if previous is not None and marks(previous) and not (late or instructed):
            upto = marks(previous)[-1] + 1
            now, then = bare(sent), bare(previous)[:upto]
            if then[-1][0] == "assistant" and [block["type"] for _, block in now[upto : upto + 1]] == ["thinking"]:
                # A summary right before thinking is the user's. Such a request never was: with thinking, none may end in the assistant's
                # words. What they say stays all the same.
                now, then = [[("", block) for _, block in one] for one in (now, then)]
            assert now[:upto] == then
            assert upto - 1 in marks(sent) or not previous.messages, "the next request reads from where the last one ended"
        previous = sent


# Limits of a request: A8


def kinds(sent: AnthropicMessages) -> str:
    """A letter for each block: "i" for an image, "t" for a text, …"""
    return "".join(block["type"][0] for _, block in in_order(sent))


def whole(session: Session) -> AnthropicMessages:
    sent = to_anthropic(session)
    assert validate_anthropic(sent) == []
    assert to_anthropic(from_anthropic(*sent)) == sent
    return sent


def test_of_more_than_a_hundred_images_the_oldest_become_notes_twenty_at_a_time() -> None:
    image = picture()
    session, seen, changes = Session(), "", 0
    for count in range(1, 146):
        session.add_message("user", image)
        if count >= 98:
            found = kinds(to_anthropic(session))
            changes += not found.startswith(seen)
            seen = found
            assert found.count("i") <= 100
            assert found.endswith("i" * 80)
    assert changes == 3
    assert kinds(whole(session)) == "t" * 63 + "i" * 82


def test_documents_are_not_given_up_for_there_being_many_images() -> None:
    session = Session([Message("user", [Document(text="d"), *[picture()] * 101])])
    assert kinds(whole(session)) == "d" + "t" * 21 + "i" * 80


def test_images_in_outputs_count_too_and_are_noted_in_place() -> None:
    image = picture()
    looks = [item for n in range(102) for item in (call(f"c{n}"), FunctionCallOutput("run", ["x", image], f"c{n}"))]
    sent = whole(Session([Message("user", "a"), *looks]))
    results = [block["content"] for _, block in in_order(sent) if block["type"] == "tool_result"]
    assert results[0] == [{"type": "text", "text": "x"}, {"type": "text", "text": "[image not shown]"}]
    assert sum(inner["type"] == "image" for content in results for inner in content) == 81


def test_among_more_than_twenty_images_and_documents_the_large_ones_are_made_smaller() -> None:
    large, other = picture(2400, 4), picture(1999, 4)

    def sizes(session: Session) -> list[tuple[int, int] | None]:
        sources = [block["source"] for _, block in in_order(whole(session)) if block["type"] == "image"]
        return [image_size(some_bytes(source["data"], "")) for source in sources]

    few = Session([Message("user", [large, other, *[Document(text="d")] * 18])])
    assert sizes(few) == [(2400, 4), (1999, 4)]
    few.add_message("user", Document(url="https://example.org/a.pdf"))
    assert sizes(few) == [(2000, 3), (1999, 4)]


def test_images_and_documents_too_large_together_are_given_up_from_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MOST_ENCODED", 4000)
    monkeypatch.setattr(blocks, "LESS_ENCODED", 2000)
    bill = Document(data=pdf(750), title="Bill")  # a thousand characters each
    session, seen, changes = Session(), "", 0
    for _ in range(13):
        session.add_message("user", bill)
        found = kinds(whole(session))
        changes += not found.startswith(seen)
        seen = found
    assert seen == "t" * 9 + "d" * 4
    assert changes == 3
    session.add_message("user", Document(data=pdf(3000)))
    assert kinds(whole(session)) == "t" * 13 + "d"
    session.add_message("user", Document(data=pdf(3001)))
    assert kinds(whole(session)) == "t" * 15


def test_what_is_sent_leaves_the_session_and_its_blocks_alone() -> None:
    session = Session([Message("user", [picture(2400, 4), *[picture()] * 104])])
    before = copy.deepcopy(session.to_dict())
    first = to_anthropic(session, caching=True)
    assert to_anthropic(session, caching=True) == first
    assert session.to_dict() == before
