"""Retries of a request with refused parts, and guesses that are withdrawn."""

from __future__ import annotations

from typing import Any

import pytest

from context_window import Image, PartRefusedError, PromptTooLongError, Session
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
        assert manager.process_session(session).items == session.items
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
