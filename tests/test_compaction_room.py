"""What is told of a summary, and whether it may stand, goes by what the next view costs: with the provider's reports, and refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_window import Message, PromptTooLongError, Session, Usage
from tests.support.compacting import Watched, Writer, compactions, managed

REFUSAL = PromptTooLongError("prompt is too long")


class Talk:
    """A conversation whose provider counts so many percent of what is counted here, and says so."""

    def __init__(self, budget: int, percent: int, *, items: int | None = None, size: int = 30) -> None:
        self.manager = Watched(budget, max_context_items=items, warn_at=())
        self.budget, self.percent = budget, percent
        self.session = Session(id="s")
        self.llm: Writer | None = Writer("Earlier: " + "s" * size)

    def turn(self, size: int) -> tuple[int, int]:
        """What the request of another turn costs, and what it would without another summary."""
        number = len(self.session.items)
        self.session.add_message("user", "q" * size, f"u{number}", 0.0)
        without = self.manager.plan_session(self.session).after
        view = managed(self.manager, self.session, self.llm)
        total = self.manager.get_token_usage()["total"]
        said = sum(len(item.text) for item in view.items if isinstance(item, Message))
        usage = Usage(input_tokens=max(1, said * self.percent // 100), output_tokens=60)
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
def test_what_is_told_of_a_summary_is_what_the_view_costs_and_none_makes_it_exceed_its_budget(
    percent: int, turns: list[int], items: int | None, written: int
) -> None:
    talk = Talk(1_000, percent, items=items, size=written)
    for size in turns:
        before = len(talk.manager.compacted)
        total, without = talk.turn(size)
        assert total <= max(talk.budget, without)
        assert [event.tokens for event in talk.manager.compacted[before:]] in ([], [total])


@pytest.mark.parametrize("percent", [70, 100, 180])
def test_a_refusal_before_it_changes_nothing_of_that(percent: int) -> None:
    talk, told = Talk(2_000, percent), 0
    for turn in range(40):
        before = len(talk.manager.compacted)
        total, _ = talk.turn(60 + turn)
        assert [event.tokens for event in talk.manager.compacted[before:]] in ([], [total])
        told += len(talk.manager.compacted) - before
        if turn == 8:
            talk.session.add_message("user", "More?", "more", 0.0)
            managed(talk.manager, talk.session)
            talk.manager.accept_refusal(talk.session, REFUSAL)
    assert told > 1


def test_one_that_may_not_stand_leaves_no_trace() -> None:
    """Whether it may is tried on a copy: the views go on as they would have."""
    one, other = Talk(1_000, 300, size=200), Talk(1_000, 300)
    other.llm = None
    for _ in range(20):
        assert one.turn(60) == other.turn(60)
    assert any("no room" in event.why for event in one.manager.failed)
    assert compactions(one.session) == []
