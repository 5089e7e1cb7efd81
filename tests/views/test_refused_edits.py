"""Refusals of one-shot views, and of logs that are edited afterwards."""

from __future__ import annotations

from typing import Any

from context_window import ContextWindow, ContextWindowManager, Image, ModelConfig, PartRefusedError, Session
from session.items import Message, Reasoning
from session.providers.anthropic.write import media_places
from tests.support.counting import Letters
from tests.support.refusing import BAD, make_manager


def refusal(*position: int, kind: Any = "image") -> PartRefusedError:
    return PartRefusedError("Could not process image", 400, part_kind=kind, place=position or None)


def conversation(turns: int) -> Session:
    session = Session(id="s")
    for number in range(turns):
        session.add_message("user", "q", message_id=f"q{number}")
        session.add_message("assistant", "a", message_id=f"a{number}")
    return session


def test_the_place_in_a_one_shot_view_is_looked_up_in_that_view() -> None:
    """`accept_refusal` takes the view that was refused: the same place of another view holds another image."""
    images = [Image(url=f"https://example.org/{number}.png", width=8, height=6) for number in range(6)]
    config = ContextWindow(max_tokens=600, warn_at=(), output_reserve=0, images_max=20, images_kept=20)
    manager = ContextWindowManager("claude-sonnet-4-5", Letters(), context_window=config)
    session = Session(id="s")
    for number, image in enumerate(images):
        session.add_message("user", [f"picture {number} " + "x" * 60, image], message_id=f"u{number}")
        session.add_message("assistant", "y" * 60)
    session.add_message("user", "and?")
    view = manager.trim_session(session, preserve_recency=False)
    places = media_places(view)
    assert places != media_places(manager.process_session(session))
    position = max(places)
    assert manager.accept_refusal(view, refusal(*position))
    assert places[position] not in media_places(manager.trim_session(session, preserve_recency=False)).values()
    assert [image for image in places.values() if image in media_places(manager.trim_session(session, preserve_recency=False)).values()]
    assert not manager.accept_refusal(view, refusal(*position)), "it is a note already"


def test_a_guess_that_an_answer_has_borne_out_stays_a_note_after_an_edit() -> None:
    manager, session = make_manager(), conversation(4)
    session.add_message("user", ["look", Image(BAD)], message_id="image")
    assert manager.accept_refusal(session, refusal())
    session.add_message("assistant", "I cannot see it.")
    session.add_message("user", "Well.")
    session.pin("image")
    session.truncate(max_items=3)
    manager.withdraw_refusal(session)
    assert media_places(manager.process_session(session)) == {}


def test_a_guess_is_taken_back_although_items_were_inserted_before_it() -> None:
    manager, session = make_manager(), Session(id="s")
    session.append(Message("user", "q", created_at=10))
    session.append(Message("assistant", "a", created_at=11))
    session.append(Message("user", ["look", Image(BAD)], created_at=12))
    assert manager.accept_refusal(session, refusal())
    session.insert_many([Message("user", "earlier", created_at=1) for _ in range(3)])
    manager.withdraw_refusal(session)
    assert list(media_places(manager.process_session(session)).values()) == [Image(BAD)]


def test_reasoning_of_an_edited_log_does_not_depend_on_when_views_were_made() -> None:
    """The same log gives the same view: an edit drops no reasoning from after the refusal."""
    manager = ContextWindowManager(
        ModelConfig("claude-opus-5", 100_000, binds_thinking=True), Letters(), context_window=ContextWindow(warn_at=())
    )
    session = Session(id="s")
    session.add_message("user", ["look", Image(BAD)], message_id="image")
    session.pin("image")
    for _ in range(5):
        session.add_message("assistant", "a")
        session.add_message("user", "q")
    assert manager.accept_refusal(session, refusal(0, 1))
    session.truncate(max_items=3)
    manager.process_session(session)
    for number in range(3):
        session.append(Reasoning("t", signature="s" * 40, id=f"r{number}"))
        session.add_message("assistant", "a")
        session.add_message("user", "q")
        before = [item.id for item in manager.process_session(session).items if isinstance(item, Reasoning)]
        session.pin(session.items[-1].id)
        assert [item.id for item in manager.process_session(session).items if isinstance(item, Reasoning)] == before
    assert before == ["r0", "r1", "r2"]
