"""A refused image or document becomes a note, and the request is sent once more: real client, strict stub."""

from __future__ import annotations

import base64

import pytest

from context_window import Document, Image, ModelError, PartRefused, PartRefusedError, Session, Text
from context_window.events.definitions import Event
from session.items import parts_of_item
from session.providers import validate_anthropic
from session.providers.anthropic.write import media_places
from tests.support import pictures
from tests.support.refusing import (
    BAD,
    GOOD,
    IMAGE_WORDS,
    PDF,
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
from tests.support.stubs import Call, Say, in_order

NOTE = "[image 8x6 refused by the model's provider; recall id look#1]"
URL = "https://example.org/plan.png"


def refusals(events: list[Event]) -> list[PartRefused]:
    return [event for event in events if isinstance(event, PartRefused)]


# A conversation continues


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("named", [True, False], ids=["place named", "no place named"])
def test_a_conversation_goes_on_after_an_image_that_the_provider_cannot_process(way: str, named: bool) -> None:
    """Turn 1 is refused once, tried again with a note and answered; turn 2 is not refused at all."""
    session, events = looking(Image(BAD)), list[Event]()
    manager, stub = make_manager(events), refusing(BAD, named=named)
    with asked(stub) as client:
        assert ask(manager, client, session, way) == "Answer 1."
        assert len(stub.requests) == 2
        session.add_message("user", "And now?")
        assert ask(manager, client, session, way) == "Answer 2."
    assert [media(request) for request in stub.requests] == [[BAD], [], []]
    assert all(NOTE in texts(request) for request in stub.requests[1:])
    assert all(validate_anthropic(request) == [] for request in stub.requests)
    assert parts_of_item(session.items[0]) == (Text("What is this?"), Image(BAD)), "the log is not changed"
    assert manager.recall(session, "look#1") == Image(BAD)
    (event,) = refusals(events)
    assert (event.session_id, event.item_id, event.part, event.kind) == ("s", "look", 1, "image")
    assert IMAGE_WORDS in event.why


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("named", [True, False], ids=["place named", "no place named"])
def test_a_document_that_the_provider_cannot_read_becomes_a_note_and_images_stay(way: str, named: bool) -> None:
    session = looking(Image(GOOD), Document(PDF, media_type="application/pdf", title="Plan"))
    manager, stub = make_manager(), refusing(PDF, words=PDF_WORDS, named=named)
    with asked(stub) as client:
        ask(manager, client, session, way)
    assert [media(request) for request in stub.requests] == [[GOOD, PDF], [GOOD]]
    assert "[document Plan refused by the model's provider; recall id look#2]" in texts(stub.requests[1])
    assert manager.recall(session, "look#2") == Document(PDF, media_type="application/pdf", title="Plan")


@pytest.mark.parametrize("way", WAYS)
def test_only_the_image_that_the_provider_names_becomes_a_note(way: str) -> None:
    session = looking(Image(GOOD), Image(BAD), Image(WORSE))
    stub = refusing(BAD)
    with asked(stub) as client:
        ask(make_manager(), client, session, way)
    assert [media(request) for request in stub.requests] == [[GOOD, BAD, WORSE], [GOOD, WORSE]]


def with_pictures() -> Session:
    """A log whose tool results hold images: two calls at once, the outputs in the other order."""
    session = Session(id="s")
    session.add_message("user", "Compare.", "ask")
    for call in ("c1", "c2"):
        session.add_function_call("shot", "{}", call)
    session.add_function_output("shot", [Text("the second"), Image(WORSE), Image(BAD)], "c2")
    session.add_function_output("shot", [Image(GOOD), Text("the first")], "c1")
    return session


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("named", [True, False], ids=["place named", "no place named"])
def test_an_image_in_a_tool_result_becomes_a_note_there(way: str, named: bool) -> None:
    session, manager, stub = with_pictures(), make_manager(), refusing(BAD, named=named)
    with asked(stub) as client:
        ask(manager, client, session, way)
        session.add_message("user", "And now?")
        ask(manager, client, session, way)
    assert len(stub.requests) == 3
    assert media(stub.requests[1]) == ([GOOD, WORSE] if named else [])
    assert media(stub.requests[2]) == media(stub.requests[1])
    output = session.items[3].id
    assert f"[image 8x6 refused by the model's provider; recall id {output}#2]" in texts(stub.requests[1])
    assert manager.recall(session, f"{output}#2") == Image(BAD)
    assert all(validate_anthropic(request) == [] for request in stub.requests)


def test_the_place_is_right_in_a_view_with_a_preamble_merged_messages_and_trims() -> None:
    session = Session(id="s")
    session.add_message("assistant", "I begin.")
    for _ in range(6):
        session.add_message("user", "q" * 400)
        session.add_message("assistant", "a" * 400)
    for picture in (GOOD, WORSE):
        session.add_message("user", ["One more.", Image(picture)])
    session.add_message("user", [" ", Image(BAD), "What are they?"], "last")
    manager, stub = make_manager(max_tokens=2_000, compaction=False), refusing(BAD)
    with asked(stub) as client:
        ask(manager, client, session)
    assert manager.plan_session(session).changes[0].action.value == "drop"
    assert [media(request) for request in stub.requests] == [[GOOD, WORSE, BAD], [GOOD, WORSE]]
    assert "[image 8x6 refused by the model's provider; recall id last#1]" in texts(stub.requests[1])


def test_an_image_that_was_made_smaller_for_the_request_is_found_as_well() -> None:
    """The bytes on the wire are not those of the log."""
    session, stub = looking(Image(pictures.png(9_000, 2)), Image(GOOD)), Moody()
    words = f"messages.0.content.1.image.source.base64.data: {IMAGE_WORDS}"
    stub.moods = [says(words)]
    with asked(stub) as client:
        ask(make_manager(), client, session)
    assert media(stub.requests[1]) == [GOOD]


# Refusals without a place


def test_images_that_an_answered_request_had_stay() -> None:
    session, manager, stub = looking(Image(GOOD)), make_manager(), refusing(BAD, WORSE, named=False)
    with asked(stub) as client:
        ask(manager, client, session)
        session.add_message("user", ["These?", Image(BAD), Image(WORSE)])
        ask(manager, client, session)
    assert [media(request) for request in stub.requests] == [[GOOD], [GOOD, BAD, WORSE], [GOOD]]


def test_where_no_image_is_new_all_of_them_become_notes() -> None:
    session, manager, stub = looking(Image(GOOD), Document(PDF, media_type="application/pdf")), make_manager(), Moody()
    with asked(stub) as client:
        ask(manager, client, session)
        session.add_message("user", "And now?")
        stub.moods = [says(IMAGE_WORDS)]
        ask(manager, client, session)
    assert [media(request) for request in stub.requests] == [[GOOD, PDF], [GOOD, PDF], [PDF]]


@pytest.mark.parametrize(
    "words",
    ["Unable to download the file. Please verify the URL and try again.", "This URL is disallowed by the website's robots.txt file."],
)
def test_where_a_file_could_not_be_fetched_those_with_a_url_become_notes(words: str) -> None:
    session, stub = looking(Image(GOOD), Image(url=URL, width=8, height=6)), refusing(URL, words=words, named=False)
    with asked(stub) as client:
        ask(make_manager(), client, session)
    assert [media(request) for request in stub.requests] == [[GOOD, URL], [GOOD]]
    assert f"[image 8x6 {URL} refused by the model's provider; recall id look#2]" in texts(stub.requests[1])


def test_an_image_in_a_data_url_is_not_one_to_fetch() -> None:
    inline = f"data:image/png;base64,{base64.b64encode(GOOD).decode()}"
    session, stub = looking(Image(url=inline), Image(url=URL)), refusing(URL, words="Unable to download the file.", named=False)
    with asked(stub) as client:
        ask(make_manager(), client, session)
    assert [media(request) for request in stub.requests] == [[GOOD, URL], [GOOD]]


def test_an_image_that_was_a_note_in_the_request_anyway_is_not_the_one_that_is_meant() -> None:
    """A request with more than 100 images holds only the newest ones."""
    session = looking(*(Image(pictures.png(2, 2, bytes([number, 0, 0]))) for number in range(101)))
    places = media_places(session)
    assert len(places) == 80
    assert (0, 1) not in places


def test_a_missing_uploaded_file_is_found_by_its_id() -> None:
    session, stub = looking(Image(GOOD), Image(file_id="file_2"), Document(file_id="file_1")), Moody()
    stub.moods = [says("File not found: file_1", status=404, kind="not_found_error")]
    with asked(stub) as client:
        ask(make_manager(), client, session)
    assert [media(request) for request in stub.requests] == [[GOOD, "file_2", "file_1"], [GOOD, "file_2"]]


def test_a_copy_of_a_refused_image_is_not_sent_either() -> None:
    """A model that recalls it, or a user who attaches it again, is not refused a second time."""
    session, manager, stub = looking(Image(BAD)), make_manager(), refusing(BAD)
    with asked(stub) as client:
        ask(manager, client, session)
        session.add_message("user", ["Again:", Image(BAD, detail="high")], "again")
        ask(manager, client, session)
    assert len(stub.requests) == 3
    assert "[image 8x6 refused by the model's provider; recall id again#1]" in texts(stub.requests[2])


def test_an_error_of_a_part_is_one_of_the_models_errors() -> None:
    error = PartRefusedError("Could not process image", 400, part_kind="image", place=(0, 1))
    assert isinstance(error, ModelError)
    assert (error.part_kind, error.place) == ("image", (0, 1))


def test_a_tools_answer_with_a_bad_image_is_mended_within_the_turn() -> None:
    """The model calls a tool, whose image is refused; the turn goes on with a note."""
    import asyncio

    import anthropic

    from context_window import AnthropicModel, run_turn
    from tests.support.refusing import MODEL
    from tests.support.stubs.clients import TLS

    def shot() -> Image:
        """Take a picture."""
        return Image(BAD)

    stub = refusing(BAD)
    stub.script = in_order([Call("shot")], [Say("I cannot see it.")])
    session = Session()

    async def scene() -> str:
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=TLS)
        async with anthropic.AsyncAnthropic(api_key="k", base_url=stub.url, max_retries=0, http_client=http) as client:
            model = AnthropicModel(client, MODEL, max_tokens=1_000)
            return (await run_turn(session, "Look.", model=model, tools=[shot], manager=make_manager())).text

    with stub:
        assert asyncio.run(scene()) == "I cannot see it."
    assert [media(request) for request in stub.requests] == [[], [BAD], []]
