"""Sessions with refused parts: the plan, the figures, one-shot trims, forks, and views used as logs."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from context_window import Action, ArgumentError, Document, Image, PartRefused, PartRefusedError, Reason, Session, Text, Trimmed
from context_window.events.definitions import Event
from session.items import FunctionCallOutput, Message, Reasoning, new_id, parts_of_item
from tests.support import pictures
from tests.support.carried_out import carried_out
from tests.support.engine import MEASURER
from tests.support.refusing import BAD, GOOD, PDF, WORSE, looking, make_manager
from tests.support.stubs import AnthropicStub, Say, Think
from tests.support.stubs.clients import anthropic_client

NOTE = "[image 8x6 refused by the model's provider; recall id look#1]"


def refusal(*position: int, kind: Any = "image", words: str = "Could not process image") -> PartRefusedError:
    return PartRefusedError(words, 400, part_kind=kind, place=position or None)


def refused(*parts: Any, **window: Any) -> tuple[Any, Session]:
    """Return a manager that has accepted a refusal of the first part, and its session."""
    manager, session = make_manager(**window), looking(*(parts or (Image(BAD),)))
    assert manager.accept_refusal(session, refusal(0, 1))
    return manager, session


# The plan and the figures


def test_the_plan_shows_the_refused_part_and_the_cost_of_its_note() -> None:
    manager, session = refused(Image(pictures.png(800, 600)), Image(GOOD))
    (decision,) = manager.plan_session(session)
    assert (decision.action, decision.reason, decision.refused, decision.images) == (
        Action.REPLACE_REFUSED,
        Reason.PROVIDER_REFUSED,
        (1,),
        (),
    )
    assert decision.before == MEASURER.measure(session.items[0]).tokens
    view = manager.process_session(session)
    assert decision.after == MEASURER.measure(view.items[0]).tokens < decision.before
    assert "refused parts replaced in user message (the provider refused it)" in str(manager.plan_session(session))


def test_display_and_plan_read_the_same_numbers_and_the_log_is_counted_as_it_is() -> None:
    manager, session = refused()
    untrimmed = make_manager().analyze_session(session)["total_tokens"]
    view, plan = manager.process_session(session), manager.plan_session(session)
    after = manager.get_token_usage()
    assert manager.usage().images == 0
    assert manager.usage().largest[0].tokens == plan.decisions[0].after
    assert after["total"] == plan.after == manager.usage().total == manager.analyze_session(view)["total_tokens"]
    assert manager.analyze_session(session)["total_tokens"] == plan.before == untrimmed
    assert manager.analyze_session(session)["image_count"] == 1


@pytest.mark.parametrize("one_shot", [False, True])
def test_a_plan_carried_out_is_the_view(one_shot: bool) -> None:
    manager, session = refused(Image(BAD), Document(PDF, title="Plan"), max_tokens=3_000)
    session.add_message("assistant", "A note.")
    session.add_function_call("shot", "{}", "c1")
    session.add_function_output("shot", [Image(BAD), Text("x" * 4_000), Image(GOOD)], "c1")
    view = manager.trim_session(session) if one_shot else manager.process_session(session)
    plan = manager.plan_session(session, one_shot=one_shot)
    assert [decision.refused for decision in plan] == [(1,), (), (), (0,)]
    assert plan.decisions[3].cut is not None, "the output is cut as well"
    assert carried_out(plan, session).items == view.items
    assert plan.after == sum(MEASURER.measure(item).tokens for item in view.items) + plan.overhead
    assert NOTE in str(parts_of_item(view.items[0]))


def test_the_placeholder_of_a_cleared_output_describes_the_original() -> None:
    manager, session = make_manager(max_tokens=900), Session(id="s")
    session.add_message("user", "Look.")
    session.add_function_call("shot", "{}", "c1")
    session.append(FunctionCallOutput("shot", [Text("x" * 600), Image(BAD)], "c1", id="shot"))
    assert manager.accept_refusal(session, refusal(2, 0, 1))
    session.add_message("assistant", "y" * 500)
    session.add_message("user", "And now?")
    item = manager.process_session(session).get_by_id("shot")
    assert item is not None
    assert parts_of_item(item) == (Text("[shot output taken out: 600 characters, 1 image; recall id shot]"),)
    assert manager.plan_session(session).decisions[2].reason is not Reason.PROVIDER_REFUSED
    assert manager.recall(session, "shot#1") == Image(BAD)


def test_a_view_with_a_note_is_never_the_session_itself_and_the_note_is_the_same_at_every_turn() -> None:
    manager, session = refused()
    first = manager.process_session(session)
    assert first is not session
    assert first.origin is session
    session.add_message("assistant", "A note.")
    session.add_message("user", "Sure?")
    second = manager.process_session(session)
    assert second.items[0] is first.items[0]
    assert list(second.items[1:]) == list(session.items[1:])


def test_a_note_causes_one_refusal_event_and_no_trim_event() -> None:
    events: list[Event] = []
    manager, session = make_manager(events), looking(Image(BAD))
    manager.process_session(session)
    assert manager.accept_refusal(session, refusal(0, 1, words="\x1b[31mCould not process image at https://example.org/?key=tr0ub4dor"))
    for _ in range(2):
        manager.process_session(session)
    (event,) = events
    assert isinstance(event, PartRefused)
    assert (event.tokens, event.budget) == (manager.plan_session(session).after, 100_000)
    assert event.why == "Could not process image", "the rest of the message may quote the request"
    assert not any(isinstance(event, Trimmed) for event in events)


def test_an_event_repeats_nothing_of_a_message_whose_words_are_not_known() -> None:
    """Events contain no content."""
    events: list[Event] = []
    manager, session = make_manager(events), looking(Image(BAD))
    manager.process_session(session)
    assert manager.accept_refusal(session, refusal(0, 1, words="tr0ub4dor is not a picture"))
    (event,) = events
    assert isinstance(event, PartRefused)
    assert event.why == ""
    assert "tr0ub4dor" not in str(event)


# Other sessions


def test_forks_copies_and_other_managers_know_no_refusals() -> None:
    manager, session = refused()
    for other in (session.fork(), copy.deepcopy(session), Session.from_dict(session.to_dict())):
        assert manager.process_session(other).items == other.items
        assert manager.accept_refusal(other, refusal(0, 1))
        assert NOTE in str(manager.process_session(other).items)
    assert make_manager().process_session(session).items == session.items
    assert NOTE in str(manager.process_session(session.read_only()).items)


def test_a_view_with_notes_can_be_continued_as_a_log() -> None:
    manager, session = refused(Image(BAD), Document(PDF))
    view = Session.from_view(manager.process_session(session))
    view.add_message("assistant", "A note.")
    view.add_message("user", ["And this?", Image(WORSE)], "more")
    again = make_manager()
    assert again.process_session(view).items == view.items
    assert again.accept_refusal(view, refusal(2, 1))
    assert str(again.process_session(view).items).count("refused by the model's provider") == 2
    assert again.recall(view, "look#1") == Image(BAD)


def test_a_part_that_moved_when_its_output_was_cut_keeps_its_id() -> None:
    """A cut joins the texts of an output, which moves the parts after them; here the cut output is in the log."""
    events: list[Event] = []
    manager, session = make_manager(max_tokens=1_000), Session(id="s")
    session.add_message("user", "Look.")
    session.add_function_call("shot", "{}", "c1")
    session.append(FunctionCallOutput("shot", [Text("x" * 2_000), Text("y" * 2_000), Image(BAD)], "c1", id="shot"))
    view = manager.process_session(session)
    assert parts_of_item(view.items[2])[1:] == (Image(BAD),)
    log = Session(view.items, id="log")
    again = make_manager(events)
    assert again.accept_refusal(log, refusal(2, 0, 1))
    assert parts_of_item(again.process_session(log).items[2])[1] == Text(NOTE.replace("look#1", "shot#2"))
    assert [(event.item_id, event.part) for event in events if isinstance(event, PartRefused)] == [("shot", 2)]
    assert manager.recall(session, "shot#2") == Image(BAD)


def test_a_refusal_of_a_view_applies_to_its_log() -> None:
    manager, session = make_manager(max_tokens=900), Session(id="s")
    session.add_message("user", "q" * 700)
    session.add_message("assistant", "a" * 300)
    session.add_message("user", ["What is this?", Image(BAD)], "look")
    view = manager.process_session(session)
    assert view.items != session.items
    assert manager.accept_refusal(view, refusal(0, 2))  # after the preamble
    assert NOTE in str(manager.process_session(session).items)


def test_an_edit_of_the_log_and_another_model_keep_the_note() -> None:
    manager, session = refused()
    session.pin("look")
    assert NOTE in str(manager.process_session(session).items)
    manager.use_model("claude-haiku-4-5")
    assert NOTE in str(manager.process_session(session).items)
    assert manager.accept_refusal(session, refusal(0, 1)) is False, "there is no image any more"


# Summaries


def test_the_cost_of_a_refused_document_makes_no_summary_due() -> None:
    import asyncio

    asked_for: list[str] = []

    async def writer(prompt: str) -> str:
        asked_for.append(prompt)
        return "short"

    manager, session = make_manager(max_tokens=2_000, summary_llm=writer, keep_recent_turns=1), Session(id="s")
    session.add_message("user", ["Read it.", Document(text="x" * 5_000)], "doc")
    assert manager.accept_refusal(session, refusal(0, 1, kind="document", words="Could not process PDF"))
    for number in range(4):
        session.add_message("assistant", f"a{number}")
        session.add_message("user", f"q{number}")
    view = asyncio.run(manager.manage(session))
    assert asked_for == []
    assert "[document refused by the model's provider; recall id doc#1]" in str(view.items)


# Reasoning


def test_reasoning_after_a_once_accepted_image_is_dropped_with_it() -> None:
    """Newer models refuse thinking after an edit of its prefix: real client, a stub that checks it."""
    stub = AnthropicStub(lambda request: [Think("hm"), Say("An answer.")], binds_thinking=True)
    manager, session = make_manager(), looking(Image(GOOD))
    manager.use_model("claude-opus-5-5")
    with stub, anthropic_client(stub) as client:
        thinking = {"type": "adaptive"}
        for question in ("And?", "So?", "Then?"):
            answer = client.messages.create(**manager.anthropic_request(session, model="claude-opus-5", max_tokens=900, thinking=thinking))
            for item in Session.from_anthropic([{"role": "assistant", "content": [block.to_dict() for block in answer.content]}]).items:
                session.append(replace(item, id=new_id()))
            session.add_message("user", question)
            if question == "So?":
                assert manager.accept_refusal(session, refusal(0, 1))
        client.messages.create(**manager.anthropic_request(session, model="claude-opus-5", max_tokens=900, thinking=thinking))
    thoughts = [item for item in session.items if isinstance(item, Reasoning)]
    view = manager.process_session(session)
    assert len(thoughts) == 3
    assert [item.id for item in view.items if isinstance(item, Reasoning)] == [thoughts[2].id]
    assert len(stub.answers) == 4


# Wrong arguments


@pytest.mark.parametrize("position", [(0,), (9, 9), (0, 0), (0, 1, 0), "messages.0", (0, [1]), [0, 1], ("0", "1")])
def test_a_place_without_a_part_is_a_guess(position: Any) -> None:
    manager, session = make_manager(), looking(Image(BAD))
    assert manager.accept_refusal(session, PartRefusedError("Could not process image", part_kind="image", place=position))
    manager.withdraw_refusal(session)
    assert manager.process_session(session).items == session.items


def test_withdrawing_keeps_named_parts_and_accepts_any_session() -> None:
    manager, session = refused(Image(BAD), Image(GOOD))
    assert manager.accept_refusal(session, refusal())
    assert str(manager.process_session(session).items).count("refused by") == 2
    for _ in range(2):
        manager.withdraw_refusal(session)
        assert str(manager.process_session(session).items).count("refused by") == 1
    make_manager().withdraw_refusal(Session())


@pytest.mark.parametrize("kind", ["nonsense", 5, None])
def test_no_kind_means_any_kind(kind: Any) -> None:
    manager, session = make_manager(), looking(Image(BAD), Document(PDF, media_type="application/pdf"))
    assert manager.accept_refusal(session, refusal(kind=kind, words="no"))
    assert str(manager.process_session(session).items).count("refused by") == 2


@pytest.mark.parametrize("session", [None, 5, "s"])
def test_only_sessions_have_refused_parts(session: Any) -> None:
    with pytest.raises(ArgumentError):
        make_manager().accept_refusal(session, refusal(0, 1))
    with pytest.raises(ArgumentError):
        make_manager().withdraw_refusal(session)


def test_messages_of_any_role_hold_their_parts() -> None:
    assert parts_of_item(Message("user", "x")) == (Text("x"),)
    assert parts_of_item(Reasoning("x")) == ()
