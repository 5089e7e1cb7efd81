"""The event of a summary, and the check for room, use the cost of the next view, with reported usage and refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_window import Message, PromptTooLongError, Session, Usage
from tests.support.compacting import Watched, Writer, compactions, managed

REFUSAL = PromptTooLongError("prompt is too long")


class ReportedConversation:
    """A conversation whose provider reports `percent` of the local count."""

    def __init__(self, budget: int, percent: int, *, items: int | None = None, size: int = 30) -> None:
        self.manager = Watched(budget, max_context_items=items, warn_at=())
        self.budget, self.percent = budget, percent
        self.session = Session(id="s")
        self.llm: Writer | None = Writer("Earlier: " + "s" * size)

    def turn(self, size: int) -> tuple[int, int]:
        """Add a turn. Return the cost of its request, and the cost without another summary."""
        number = len(self.session.items)
        self.session.add_message("user", "q" * size, f"u{number}", 0.0)
        without = self.manager.plan_session(self.session).after
        view = managed(self.manager, self.session, self.llm)
        total = self.manager.get_token_usage()["total"]
        characters = sum(len(item.text) for item in view.items if isinstance(item, Message))
        usage = Usage(input_tokens=max(1, characters * self.percent // 100), output_tokens=60)
        notes = self.manager.answer_notes(self.session)
        self.session.append(Message("assistant", "a" * 60, id=f"a{number}", created_at=0.0, usage=usage, extra=notes))
        return total, without


@settings(max_examples=25)
@given(
    st.integers(50, 300),
    st.lists(st.integers(10, 300), min_size=10, max_size=16),
    st.sampled_from([None, 10]),
    st.integers(30, 300),
)
def test_the_event_has_the_cost_of_the_view_and_it_stays_within_the_budget(
    percent: int, turns: list[int], items: int | None, length: int
) -> None:
    talk = ReportedConversation(1_000, percent, items=items, size=length)
    for size in turns:
        before = len(talk.manager.compacted)
        total, without = talk.turn(size)
        assert total <= max(talk.budget, without)
        assert [event.tokens for event in talk.manager.compacted[before:]] in ([], [total])


@pytest.mark.parametrize("percent", [70, 100, 180])
def test_the_same_holds_after_a_refusal(percent: int) -> None:
    talk, summaries = ReportedConversation(2_000, percent), 0
    for turn in range(40):
        before = len(talk.manager.compacted)
        total, _ = talk.turn(60 + turn)
        assert [event.tokens for event in talk.manager.compacted[before:]] in ([], [total])
        summaries += len(talk.manager.compacted) - before
        if turn == 8:
            talk.session.add_message("user", "More?", "more", 0.0)
            managed(talk.manager, talk.session)
            talk.manager.accept_refusal(talk.session, REFUSAL)
    assert summaries > 1


def test_a_rejected_summary_leaves_no_trace() -> None:
    """The check for room works on a copy, so the views are the same as without it."""
    talk, twin = ReportedConversation(1_000, 300, size=200), ReportedConversation(1_000, 300)
    twin.llm = None
    for _ in range(20):
        assert talk.turn(60) == twin.turn(60)
    assert any("no room" in event.why for event in talk.manager.failed)
    assert compactions(talk.session) == []
