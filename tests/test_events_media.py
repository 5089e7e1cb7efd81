"""Listeners hear of each image and document that is sent as a note because it is damaged: once, and only of those that a view shows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import (
    ContextWindow,
    ContextWindowManager,
    Document,
    FunctionCallOutput,
    Image,
    Message,
    ModelConfig,
    PartUnusable,
    Session,
    media_watch,
)
from context_window.events import Event
from session.image_check import CUT, UNKNOWN, image_problem
from session.items import Item
from session.parts import Part
from session.providers import media
from session.providers.media import unusable
from tests.support.counting import Letters
from tests.support.pictures import every_kind, pdf, png

HALF = png(60, 60)[:70]


def manager(told: list[Event], budget: int = 100_000, **window: Any) -> ContextWindowManager:
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(budget, warn_at=(), **window), on_event=told.append)


def told_of(told: list[Event]) -> list[tuple[str, int, str, str]]:
    return [(one.item_id, one.part, one.kind, one.problem) for one in told if isinstance(one, PartUnusable)]


def async_twin(asked: ContextWindowManager) -> Callable[[Session], Session]:
    return lambda session: asyncio.run(asked.aprocess_session(session))


CALLS: dict[str, Callable[[ContextWindowManager], Callable[[Session], Session]]] = {
    "process_session": lambda asked: asked.process_session,
    "aprocess_session": async_twin,
    "trim_session": lambda asked: asked.trim_session,
    "atrim_session": lambda asked: lambda session: asyncio.run(asked.atrim_session(session)),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_unusable_part_is_told_once(name: str) -> None:
    """One event an image, once a session and manager: not at every turn, and by another manager again."""
    told: list[Event] = []
    asked = manager(told, images_kept=9)
    ask = CALLS[name](asked)
    session = Session(
        [Message("user", ["Look:", Image(data=png()), Image(data=HALF), Image(data=b"<html>", media_type="image/png")], id="a")]
    )
    ask(session)
    session.add_function_call("read", {}, "c")
    session.append(FunctionCallOutput("read", ["See:", Document(data=pdf()[:99], media_type="application/pdf")], "c", id="b"))
    for _ in range(3):
        session.add_message("assistant", "Well.")
        session.add_message("user", "Go on.")
        ask(session)
    expected = [("a", 2, "image", CUT), ("a", 3, "image", UNKNOWN), ("b", 1, "document", CUT)]
    assert told_of(told) == expected
    for other in CALLS.values():
        other(asked)(session)
    assert told_of(told) == expected
    again: list[Event] = []
    CALLS[name](manager(again, images_kept=9))(session)
    assert told_of(again) == expected


def test_an_edit_of_the_log_and_another_budget_do_not_tell_again() -> None:
    told: list[Event] = []
    asked = manager(told, images_kept=9)
    session = Session([Message("user", ["Look:", Image(data=HALF)], id="a"), Message("user", "b", id="b")])
    asked.process_session(session)
    session.pin("b")
    session.insert(Message("user", "before all", id="0", created_at=0.0))
    session.add_message("user", Image(data=HALF), message_id="c")
    asked.process_session(session)
    asked.use_model(ModelConfig("gpt-5"))
    asked.process_session(session)
    assert told_of(told) == [("a", 1, "image", CUT), ("c", 0, "image", CUT)]


def test_what_a_view_does_not_show_is_not_told_and_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[bytes] = []

    def judging(data: bytes) -> str | None:
        judged.append(data)
        return image_problem(data)

    monkeypatch.setattr(media, "image_problem", judging)
    told: list[Event] = []
    session = Session()
    for n in range(100):
        session.add_message("user", Image(data=png(300, 300, bytes([n] * 3))[:60]), message_id=f"m{n}")
        session.add_message("assistant", "So.")
    session.add_message("user", ["x" * 400, Image(data=HALF)], message_id="last")
    asked = manager(told, 3_000, images_kept=1_000)
    view = asked.process_session(session)
    shown = {item.id for item in view.items if isinstance(item, Message) and any(isinstance(part, Image) for part in item.content)}
    assert "last" in shown
    assert len(shown) < 50
    assert {one[0] for one in told_of(told)} == shown
    assert len(judged) == len(shown)


@given(data=st.data())
def test_all_that_a_view_shows_is_told_and_nothing_else(data: st.DataObject) -> None:
    """After each view: what has been told is what the views so far have shown and no provider could read."""
    sound, broken = list(every_kind().values()), [HALF, b"<html>", b""]
    told: list[Event] = []
    asked = manager(told, data.draw(st.sampled_from([40, 300, 1_000, 100_000])), images_kept=data.draw(st.sampled_from([1, 3, 100])))
    session = Session()
    expected: set[tuple[str, int]] = set()
    for turn in range(data.draw(st.integers(1, 8))):
        for number in range(data.draw(st.integers(0, 4))):
            pictures = [Image(data=one) for one in data.draw(st.lists(st.sampled_from([*sound, *broken]), max_size=3))]
            if data.draw(st.booleans()):
                session.add_message("user", ["Look:", *pictures], message_id=f"{turn}-{number}")
            else:
                call_id = session.add_function_call("read", {}, f"{turn}-{number}").call_id
                session.add_function_output("read", ["x" * 300, *pictures[:1], "y" * 300, *pictures[1:]], call_id)
        session.add_message("user", "z" * data.draw(st.integers(1, 90)))
        view = data.draw(st.sampled_from([asked.process_session, asked.trim_session]))(session)
        shown = {id(part) for item in view.items for part in parts_of(item)}
        expected |= {
            (item.id, place)
            for item in session.items
            for place, part in enumerate(parts_of(item))
            if isinstance(part, Image) and id(part) in shown and unusable(part)
        }
        reported = [one[:2] for one in told_of(told)]
        assert set(reported) == expected
        assert len(reported) == len(expected)


def parts_of(item: Item) -> tuple[Part, ...]:
    return item.content if isinstance(item, Message) else item.output if isinstance(item, FunctionCallOutput) else ()


def test_no_content_is_in_the_event_nor_in_its_log(caplog: pytest.LogCaptureFixture) -> None:
    told: list[Event] = []
    session = Session([Message("user", Image(data=b"<html>zebra", media_type="image/zebra"), id="a")], id="s")
    with caplog.at_level(logging.DEBUG):
        manager(told).process_session(session)
    (one,) = told
    assert "zebra" not in repr(one) + str(one) + caplog.text
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(one).endswith(f"part 0 of item a is not sent: image {UNKNOWN}")


def test_turns_without_new_images_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is new is looked at, however many images there are."""
    looks: list[Item] = []
    look = parts_of
    session = Session([Message("user", [Image(data=png()), Image(data=HALF)], pinned=True) for _ in range(300)])
    asked = manager([], 10_000_000, images_kept=1_000)
    asked.process_session(session)

    def looking(item: Item) -> tuple[Part, ...]:
        looks.append(item)
        return look(item)

    monkeypatch.setattr(media_watch, "parts_of_item", looking)
    for _ in range(50):
        session.add_message("user", "Go on.")
        asked.process_session(session)
        asked.process_session(session)
    assert looks == list(session.items[-50:])
