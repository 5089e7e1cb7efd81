"""Retries of a request with refused parts, guesses that are withdrawn, and the messages of the chat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from context_window import Image, PartRefusedError, PromptTooLongError, Session
from tests.support.chat_session import new_chat, talk
from tests.support.refusing import (
    BAD,
    GOOD,
    IMAGE_WORDS,
    PDF_WORDS,
    WAYS,
    WORSE,
    Moody,
    ask,
    asked,
    looking,
    make_manager,
    media,
    refusing,
    says,
    texts,
)
from tests.support.stubs import Say, in_order

NOTE = "[image 8x6 refused by the model's provider; recall id look#1]"


# Retries


@pytest.mark.parametrize("way", WAYS)
def test_a_request_may_be_too_long_first_and_hold_a_bad_image_then(way: str) -> None:
    session = Session(id="s")
    for _ in range(8):
        session.add_message("user", "q" * 400)
        session.add_message("assistant", "a" * 400)
    session.add_message("user", ["What is this?", Image(BAD)], "look")
    stub = refusing(BAD)
    stub.moods = [says("prompt is too long: 9000 tokens > 6000 maximum")]
    with asked(stub) as client:
        assert ask(make_manager(), client, session, way) == "Answer 1."
    assert len(stub.requests) == 3
    assert len(stub.requests[1]["messages"]) < len(stub.requests[0]["messages"])
    assert NOTE in texts(stub.requests[2])


@pytest.mark.parametrize("way", WAYS)
def test_a_second_part_that_is_named_ends_the_request_and_spares_the_next_one(way: str) -> None:
    session, manager, stub = looking(Image(BAD), Image(WORSE)), make_manager(), refusing(BAD, WORSE)
    with asked(stub) as client:
        with pytest.raises(PartRefusedError, match=r"Could not process image\. Shrink, convert or leave out"):
            ask(manager, client, session, way)
        assert [media(request) for request in stub.requests] == [[BAD, WORSE], [WORSE]]
        assert ask(manager, client, session, way) == "Answer 1."
    assert media(stub.requests[2]) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("second", "error"),
    [
        (says(IMAGE_WORDS), PartRefusedError),
        (says("Overloaded", status=529, kind="overloaded_error"), Exception),
        (says("tools.0.custom.name: Field required"), Exception),
    ],
    ids=["refused again", "overloaded", "another refusal"],
)
def test_a_guess_that_did_not_help_is_taken_back(way: str, second: Any, error: type[Exception]) -> None:
    """After a failed second attempt the next request shows all images again."""
    session, manager, stub = looking(Image(GOOD), Image(WORSE)), make_manager(), Moody(says(IMAGE_WORDS), second)
    with asked(stub) as client:
        with pytest.raises(error):
            ask(manager, client, session, way)
        assert [media(request) for request in stub.requests] == [[GOOD, WORSE], []]
        assert manager.process_session(session) is session
        ask(manager, client, session, way)
    assert media(stub.requests[2]) == [GOOD, WORSE]


def test_a_guess_that_helped_outlasts_a_later_failure() -> None:
    session, manager, stub = looking(Image(BAD)), make_manager(), refusing(BAD, named=False)
    with asked(stub) as client:
        ask(manager, client, session)
        session.add_message("user", ["And this?", Image(GOOD)])
        stub.moods = [says(IMAGE_WORDS), says("Overloaded", status=529, kind="overloaded_error")]
        with pytest.raises(Exception, match="Overloaded"):
            ask(manager, client, session)
        ask(manager, client, session)
    assert media(stub.requests[-1]) == [GOOD]


@pytest.mark.parametrize("way", WAYS)
def test_a_refusal_that_no_part_of_the_request_can_be_meant_by_is_not_tried_again(way: str) -> None:
    stub = Moody(says(PDF_WORDS))
    with asked(stub) as client, pytest.raises(PartRefusedError):
        ask(make_manager(), client, looking(Image(GOOD)), way)
    assert len(stub.requests) == 1


def test_a_prompt_that_is_too_long_twice_is_still_an_error_after_a_bad_image() -> None:
    session, stub = looking(Image(BAD)), refusing(BAD)
    for _ in range(5):
        session.add_message("assistant", "a" * 400)
        session.add_message("user", "q" * 400)
    stub.moods = [lambda body: None, *(says("prompt is too long") for _ in range(3))]
    with asked(stub) as client, pytest.raises(PromptTooLongError):
        ask(make_manager(), client, session)
    assert len(stub.requests) == 3


# The chat


def test_the_chat_reports_a_refusal_in_one_line_and_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from context_window.repl.workspace import Workspace

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "bad.png").write_bytes(BAD)
    chat = new_chat(None)
    monkeypatch.setattr("tests.support.chat_session.AnthropicStub", _unusable)
    monkeypatch.chdir(tmp_path)
    events, stub = talk(
        chat, Workspace(tmp_path), in_order([Say("A note.")], [Say("Yes.")]), "/image bad.png", "What is it?", "Sure?", "/trims"
    )
    flat = " ".join(events.split())
    assert "replaced by a note: the provider refused it" in flat
    assert flat.count("the provider refused it (") == 1
    assert len(stub.requests) == 3
    assert "refused parts replaced" in flat


def test_the_chat_says_how_many_were_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from context_window.repl.workspace import Workspace

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    for name, data in (("bad.png", BAD), ("worse.png", WORSE)):
        (tmp_path / name).write_bytes(data)
    monkeypatch.setattr("tests.support.chat_session.AnthropicStub", _nameless)
    chat = new_chat(None)
    events, _ = talk(chat, Workspace(tmp_path), in_order([Say("No.")]), "/image bad.png", "/image worse.png", "What are they?")
    flat = " ".join(events.split())
    assert "the provider refused 2 images or documents; notes replace them (see /trims)" in flat
    assert "Could not process image" not in flat


def _nameless(script: Any) -> Any:
    stub = refusing(BAD, WORSE, named=False)
    stub.script = script
    return stub


def _unusable(script: Any) -> Any:
    stub = refusing(BAD)
    stub.script = script
    return stub
