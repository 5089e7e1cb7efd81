"""What a manager makes of a session whose provider has refused a part: the plan, the figures, one-shot trims, forks, views as logs."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from context_window import Action, BudgetError, Document, Image, PartRefused, PartRefusedError, Reason, Session, Text, Trimmed
from context_window.events import Event
from context_window.trimming.apply import apply
from session.items import FunctionCallOutput, Message, Reasoning, new_id, parts_of_item
from tests.support import pictures
from tests.support.refusing import BAD, GOOD, PDF, WORSE, looking, manager
from tests.support.stubs import AnthropicStub, Say, Think
from tests.support.stubs.clients import anthropic_client

NOTE = "[image 8x6 refused by the model's provider; recall id look#1]"


def refusal(*place: int, kind: Any = "image", words: str = "Could not process image") -> PartRefusedError:
    return PartRefusedError(words, 400, part_kind=kind, place=place or None)


def refused(*parts: Any, **window: Any) -> tuple[Any, Session]:
    """A manager that has accepted the refusal of the first part."""
    one, session = manager(**window), looking(*(parts or (Image(BAD),)))
    assert one.accept_refusal(session, refusal(0, 1))
    return one, session


# The plan and the figures


def test_the_plan_says_what_was_refused_and_what_the_note_costs() -> None:
    one, session = refused(Image(pictures.png(800, 600)), Image(GOOD))
    (decision,) = one.plan_session(session)
    measurer = one._settings.measurer
    assert (decision.action, decision.reason, decision.refused, decision.images) == (
        Action.REPLACE_REFUSED,
        Reason.PROVIDER_REFUSED,
        (1,),
        (),
    )
    assert decision.before == measurer.measured(session.items[0]).tokens
    view = one.process_session(session)
    assert decision.after == measurer.measured(view.items[0]).tokens < decision.before
    assert "refused parts replaced in user message (the provider refused it)" in str(one.plan_session(session))


def test_display_and_plan_read_the_same_numbers_and_the_log_is_counted_as_it_is() -> None:
    one, session = refused()
    whole = manager().analyze_session(session)["total_tokens"]
    view, plan = one.process_session(session), one.plan_session(session)
    after = one.get_token_usage()
    assert one.usage().images == 0
    assert one.usage().largest[0].tokens == plan.decisions[0].after
    assert after["total"] == plan.after == one.usage().total == one.analyze_session(view)["total_tokens"]
    assert one.analyze_session(session)["total_tokens"] == plan.before == whole
    assert one.analyze_session(session)["image_count"] == 1


@pytest.mark.parametrize("one_shot", [False, True])
def test_a_plan_carried_out_is_the_view(one_shot: bool) -> None:
    one, session = refused(Image(BAD), Document(PDF, title="Plan"), max_tokens=3_000)
    session.add_message("assistant", "A note.")
    session.add_function_call("shot", "{}", "c1")
    session.add_function_output("shot", [Image(BAD), Text("x" * 4_000), Image(GOOD)], "c1")
    view = one.trim_session(session) if one_shot else one.process_session(session)
    plan = one.plan_session(session, one_shot=one_shot)
    assert [decision.refused for decision in plan] == [(1,), (), (), (0,)]
    assert plan.decisions[3].cut is not None, "the output is cut as well"
    assert apply(plan, session).items == view.items
    assert plan.after == sum(one._settings.measurer.measured(item).tokens for item in view.items) + plan.overhead
    assert NOTE in str(parts_of_item(view.items[0]))


def test_a_cleared_output_says_what_it_was_not_what_was_noted() -> None:
    one, session = manager(max_tokens=900), Session(id="s")
    session.add_message("user", "Look.")
    session.add_function_call("shot", "{}", "c1")
    session.append(FunctionCallOutput("shot", [Text("x" * 600), Image(BAD)], "c1", id="shot"))
    assert one.accept_refusal(session, refusal(2, 0, 1))
    session.add_message("assistant", "y" * 500)
    session.add_message("user", "And now?")
    item = one.process_session(session).get_by_id("shot")
    assert item is not None
    assert parts_of_item(item) == (Text("[shot output taken out: 600 characters, 1 image; recall id shot]"),)
    assert one.plan_session(session).decisions[2].reason is not Reason.PROVIDER_REFUSED
    assert one.recall(session, "shot#1") == Image(BAD)


def test_a_view_with_a_note_is_never_the_session_itself_and_the_note_is_the_same_at_every_turn() -> None:
    one, session = refused()
    first = one.process_session(session)
    assert first is not session
    assert first.origin is session
    session.add_message("assistant", "A note.")
    session.add_message("user", "Sure?")
    second = one.process_session(session)
    assert second.items[0] is first.items[0]
    assert list(second.items[1:]) == list(session.items[1:])


def test_a_note_is_told_once_as_a_refusal_and_not_as_a_trim() -> None:
    told: list[Event] = []
    one, session = manager(told), looking(Image(BAD))
    one.process_session(session)
    assert one.accept_refusal(session, refusal(0, 1, words="\x1b[31mCould not process image at https://example.org/?key=tr0ub4dor"))
    for _ in range(2):
        one.process_session(session)
    (event,) = told
    assert isinstance(event, PartRefused)
    assert (event.tokens, event.budget) == (one.plan_session(session).after, 100_000)
    assert event.why == "Could not process image", "the rest of the message may quote the request"
    assert not any(isinstance(one, Trimmed) for one in told)


def test_an_event_repeats_nothing_of_a_message_whose_words_are_not_known() -> None:
    """No content is in an event."""
    told: list[Event] = []
    one, session = manager(told), looking(Image(BAD))
    one.process_session(session)
    assert one.accept_refusal(session, refusal(0, 1, words="tr0ub4dor is not a picture"))
    (event,) = told
    assert isinstance(event, PartRefused)
    assert event.why == ""
    assert "tr0ub4dor" not in str(event)


# Other sessions


def test_forks_copies_and_other_managers_begin_anew() -> None:
    one, session = refused()
    for other in (session.fork(), copy.deepcopy(session), Session.from_dict(session.to_dict())):
        assert one.process_session(other) is other
        assert one.accept_refusal(other, refusal(0, 1))
        assert NOTE in str(one.process_session(other).items)
    assert manager().process_session(session) is session
    assert NOTE in str(one.process_session(session.read_only()).items)


def test_a_view_may_be_gone_on_with_as_a_log() -> None:
    one, session = refused(Image(BAD), Document(PDF))
    view = one.process_session(session)
    view.add_message("assistant", "A note.")
    view.add_message("user", ["And this?", Image(WORSE)], "more")
    again = manager()
    assert again.process_session(view) is view
    assert again.accept_refusal(view, refusal(2, 1))
    assert str(again.process_session(view).items).count("refused by the model's provider") == 2
    assert again.recall(view, "look#1") == Image(BAD)


def test_a_part_that_moved_when_its_output_was_cut_keeps_its_id() -> None:
    """A cut joins the texts of an output, so that the parts after them stand elsewhere; here the cut output is in the log."""
    told: list[Event] = []
    one, session = manager(max_tokens=1_000), Session(id="s")
    session.add_message("user", "Look.")
    session.add_function_call("shot", "{}", "c1")
    session.append(FunctionCallOutput("shot", [Text("x" * 2_000), Text("y" * 2_000), Image(BAD)], "c1", id="shot"))
    view = one.process_session(session)
    assert parts_of_item(view.items[2])[1:] == (Image(BAD),)
    log = Session(view.items, id="log")
    again = manager(told)
    assert again.accept_refusal(log, refusal(2, 0, 1))
    assert parts_of_item(again.process_session(log).items[2])[1] == Text(NOTE.replace("look#1", "shot#2"))
    assert [(event.item_id, event.part) for event in told if isinstance(event, PartRefused)] == [("shot", 2)]
    assert one.recall(session, "shot#2") == Image(BAD)


def test_what_is_refused_in_a_view_is_refused_in_its_log() -> None:
    one, session = manager(max_tokens=900), Session(id="s")
    session.add_message("user", "q" * 700)
    session.add_message("assistant", "a" * 300)
    session.add_message("user", ["What is this?", Image(BAD)], "look")
    view = one.process_session(session)
    assert view is not session
    assert one.accept_refusal(view, refusal(0, 2))  # after the preamble
    assert NOTE in str(one.process_session(session).items)


def test_an_edit_of_the_log_and_another_model_keep_the_note() -> None:
    one, session = refused()
    session.pin("look")
    assert NOTE in str(one.process_session(session).items)
    one.use_model("claude-haiku-4-5")
    assert NOTE in str(one.process_session(session).items)
    assert one.accept_refusal(session, refusal(0, 1)) is False, "there is no image any more"


# Summaries


def test_what_a_refused_document_would_have_cost_makes_no_summary_due() -> None:
    import asyncio

    asked_for: list[str] = []

    async def writer(prompt: str) -> str:
        asked_for.append(prompt)
        return "short"

    one, session = manager(max_tokens=2_000, summary_llm=writer, keep_recent_turns=1), Session(id="s")
    session.add_message("user", ["Read it.", Document(text="x" * 5_000)], "doc")
    assert one.accept_refusal(session, refusal(0, 1, kind="document", words="Could not process PDF"))
    for number in range(4):
        session.add_message("assistant", f"a{number}")
        session.add_message("user", f"q{number}")
    view = asyncio.run(one.manage(session))
    assert asked_for == []
    assert "[document refused by the model's provider; recall id doc#1]" in str(view.items)


# Reasoning


def test_reasoning_after_an_image_that_was_taken_once_goes_with_it() -> None:
    """Newer models refuse a thought after an edit of what came before it: the real client, a stub that binds them."""
    stub = AnthropicStub(lambda request: [Think("hm"), Say("An answer.")], binds_thinking=True)
    one, session = manager(), looking(Image(GOOD))
    one.use_model("claude-opus-5-5")
    with stub, anthropic_client(stub) as client:
        thinking = {"type": "adaptive"}
        for question in ("And?", "So?", "Then?"):
            answer = client.messages.create(**one.anthropic_request(session, model="claude-opus-5", max_tokens=900, thinking=thinking))
            for item in Session.from_anthropic([{"role": "assistant", "content": [block.to_dict() for block in answer.content]}]).items:
                session.append(replace(item, id=new_id()))
            session.add_message("user", question)
            if question == "So?":
                assert one.accept_refusal(session, refusal(0, 1))
        client.messages.create(**one.anthropic_request(session, model="claude-opus-5", max_tokens=900, thinking=thinking))
    thoughts = [item for item in session.items if isinstance(item, Reasoning)]
    view = one.process_session(session)
    assert len(thoughts) == 3
    assert [item.id for item in view.items if isinstance(item, Reasoning)] == [thoughts[2].id]
    assert len(stub.answers) == 4


# What is none


@pytest.mark.parametrize("place", [(0,), (9, 9), (0, 0), (0, 1, 0), "messages.0", (0, [1]), [0, 1], ("0", "1")])
def test_a_place_without_a_part_is_a_guess(place: Any) -> None:
    one, session = manager(), looking(Image(BAD))
    assert one.accept_refusal(session, PartRefusedError("Could not process image", part_kind="image", place=place))
    one.withdraw_refusal(session)
    assert one.process_session(session) is session


def test_taking_back_takes_no_part_back_that_was_named_and_may_be_asked_of_anything_quiet() -> None:
    one, session = refused(Image(BAD), Image(GOOD))
    assert one.accept_refusal(session, refusal())
    assert str(one.process_session(session).items).count("refused by") == 2
    for _ in range(2):
        one.withdraw_refusal(session)
        assert str(one.process_session(session).items).count("refused by") == 1
    manager().withdraw_refusal(Session())


@pytest.mark.parametrize("kind", ["nonsense", 5, None])
def test_a_kind_that_is_none_means_any(kind: Any) -> None:
    one, session = manager(), looking(Image(BAD), Document(PDF, media_type="application/pdf"))
    assert one.accept_refusal(session, refusal(kind=kind, words="no"))
    assert str(one.process_session(session).items).count("refused by") == 2


@pytest.mark.parametrize("session", [None, 5, "s"])
def test_only_sessions_have_refused_parts(session: Any) -> None:
    with pytest.raises(BudgetError):
        manager().accept_refusal(session, refusal(0, 1))
    with pytest.raises(BudgetError):
        manager().withdraw_refusal(session)


def test_messages_of_any_role_hold_their_parts() -> None:
    assert parts_of_item(Message("user", "x")) == (Text("x"),)
    assert parts_of_item(Reasoning("x")) == ()
