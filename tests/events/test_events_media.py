"""Events about damaged images and documents: one for each that a view shows, and none for hidden ones."""

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
)
from context_window.events import unusable_media
from context_window.events.definitions import Event
from session.document_check import CUT
from session.image_check import BROKEN, UNKNOWN, image_problem
from session.items import Item
from session.parts import Part
from session.providers import media
from session.providers.media import unusable
from tests.support.counting import Letters
from tests.support.pictures import every_kind, pdf, png

HALF = png(60, 60)[:70]


def make_manager(events: list[Event], budget: int = 100_000, **window: Any) -> ContextWindowManager:
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(budget, warn_at=(), **window), on_event=events.append)


def told_of(events: list[Event]) -> list[tuple[str, int, str, str]]:
    return [(event.item_id, event.part, event.kind, event.problem) for event in events if isinstance(event, PartUnusable)]


def async_twin(manager: ContextWindowManager) -> Callable[[Session], Session]:
    return lambda session: asyncio.run(manager.aprocess_session(session))


CALLS: dict[str, Callable[[ContextWindowManager], Callable[[Session], Session]]] = {
    "process_session": lambda manager: manager.process_session,
    "aprocess_session": async_twin,
    "trim_session": lambda manager: manager.trim_session,
    "atrim_session": lambda manager: lambda session: asyncio.run(manager.atrim_session(session)),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_unusable_part_is_reported_once(name: str) -> None:
    """One event per image, session and manager: not at every turn, but again from another manager."""
    events: list[Event] = []
    manager = make_manager(events, images_kept=9)
    ask = CALLS[name](manager)
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
    expected = [("a", 2, "image", BROKEN), ("a", 3, "image", UNKNOWN), ("b", 1, "document", CUT)]
    assert told_of(events) == expected
    for other in CALLS.values():
        other(manager)(session)
    assert told_of(events) == expected
    again: list[Event] = []
    CALLS[name](make_manager(again, images_kept=9))(session)
    assert told_of(again) == expected


def test_an_edit_of_the_log_and_another_budget_do_not_tell_again() -> None:
    events: list[Event] = []
    manager = make_manager(events, images_kept=9)
    session = Session([Message("user", ["Look:", Image(data=HALF)], id="a"), Message("user", "b", id="b")])
    manager.process_session(session)
    session.pin("b")
    session.insert(Message("user", "before all", id="0", created_at=0.0))
    session.add_message("user", Image(data=HALF), message_id="c")
    manager.process_session(session)
    manager.use_model(ModelConfig("gpt-5"))
    manager.process_session(session)
    assert told_of(events) == [("a", 1, "image", BROKEN), ("c", 0, "image", BROKEN)]


def test_hidden_parts_are_neither_reported_nor_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[bytes] = []

    def judging(data: bytes) -> str | None:
        judged.append(data)
        return image_problem(data)

    monkeypatch.setattr(media, "image_problem", judging)
    events: list[Event] = []
    session = Session()
    for n in range(100):
        session.add_message("user", Image(data=png(300, 300, bytes([n] * 3))[:60]), message_id=f"m{n}")
        session.add_message("assistant", "So.")
    session.add_message("user", ["x" * 400, Image(data=HALF)], message_id="last")
    manager = make_manager(events, 3_000, images_kept=1_000)
    view = manager.process_session(session)
    visible = {item.id for item in view.items if isinstance(item, Message) and any(isinstance(part, Image) for part in item.content)}
    assert "last" in visible
    assert len(visible) < 50
    assert {event[0] for event in told_of(events)} == visible
    assert len(judged) == len(visible)


@given(data=st.data())
def test_exactly_the_visible_unusable_parts_are_reported(data: st.DataObject) -> None:
    """After each view, the reported parts are exactly the unreadable ones that views have shown so far."""
    sound, broken = list(every_kind().values()), [HALF, b"<html>", b""]
    events: list[Event] = []
    manager = make_manager(
        events, data.draw(st.sampled_from([40, 300, 1_000, 100_000])), images_kept=data.draw(st.sampled_from([1, 3, 100]))
    )
    session = Session()
    expected: set[tuple[str, int]] = set()
    for turn in range(data.draw(st.integers(1, 8))):
        for number in range(data.draw(st.integers(0, 4))):
            pictures = [Image(data=event) for event in data.draw(st.lists(st.sampled_from([*sound, *broken]), max_size=3))]
            if data.draw(st.booleans()):
                session.add_message("user", ["Look:", *pictures], message_id=f"{turn}-{number}")
            else:
                call_id = session.add_function_call("read", {}, f"{turn}-{number}").call_id
                session.add_function_output("read", ["x" * 300, *pictures[:1], "y" * 300, *pictures[1:]], call_id)
        session.add_message("user", "z" * data.draw(st.integers(1, 90)))
        view = data.draw(st.sampled_from([manager.process_session, manager.trim_session]))(session)
        visible = {id(part) for item in view.items for part in parts_of(item)}
        expected |= {
            (item.id, index)
            for item in session.items
            for index, part in enumerate(parts_of(item))
            if isinstance(part, Image) and id(part) in visible and unusable(part)
        }
        reported = [event[:2] for event in told_of(events)]
        assert set(reported) == expected
        assert len(reported) == len(expected)


def parts_of(item: Item) -> tuple[Part, ...]:
    return item.content if isinstance(item, Message) else item.output if isinstance(item, FunctionCallOutput) else ()


def test_no_content_is_in_the_event_nor_in_its_log(caplog: pytest.LogCaptureFixture) -> None:
    events: list[Event] = []
    session = Session([Message("user", Image(data=b"<html>zebra", media_type="image/zebra"), id="a")], id="s")
    with caplog.at_level(logging.DEBUG):
        make_manager(events).process_session(session)
    (event,) = events
    assert "zebra" not in repr(event) + str(event) + caplog.text
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(event).endswith(f"part 0 of item a is not sent: image {UNKNOWN}")


def test_turns_without_new_images_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images that were checked are not looked at again."""
    looks: list[Item] = []
    look = parts_of
    session = Session([Message("user", [Image(data=png()), Image(data=HALF)], pinned=True) for _ in range(300)])
    manager = make_manager([], 10_000_000, images_kept=1_000)
    manager.process_session(session)

    def looking(item: Item) -> tuple[Part, ...]:
        looks.append(item)
        return look(item)

    monkeypatch.setattr(unusable_media, "parts_of_item", looking)
    for _ in range(50):
        session.add_message("user", "Go on.")
        manager.process_session(session)
        manager.process_session(session)
    assert looks == []
