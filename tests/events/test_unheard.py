"""A view that does not fit is never silent: a listener gets the event, and a program without one is warned."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextOverflowError, ContextWindowManager, ContextWindowWarning, OverBudget, Session


@given(st.integers(0, 3_000), st.integers(200, 2_000), st.booleans(), st.booleans())
def test_what_does_not_fit_is_said_once_and_in_one_way(letters: int, budget: int, is_heard: bool, is_strict: bool) -> None:
    """By an exception, an event or a warning; what fits, by none."""
    session, events = Session(), list[object]()
    session.add_message("system", "word " * letters)
    session.add_message("user", "Hi.")
    manager = ContextWindowManager(max_tokens=budget, strict=is_strict, on_event=events.append if is_heard else None)
    is_too_large = manager.plan_session(session).over_budget
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            manager.process_session(session)
            is_raised = False
        except ContextOverflowError:
            is_raised = True
    heard = [event for event in events if isinstance(event, OverBudget)]
    assert is_raised == (is_strict and is_too_large)
    assert len(heard) == (is_heard and is_too_large)
    assert len(caught) == (is_too_large and not is_heard and not is_strict)


def test_the_warning_has_the_figures_and_points_at_the_caller() -> None:
    session = Session()
    session.add_message("system", "word " * 900)
    session.add_message("user", "Hi.")
    with pytest.warns(ContextWindowWarning, match=r"over budget by .* Shorten or unpin some of them") as caught:
        ContextWindowManager(max_tokens=300).process_session(session)
    (warning,) = caught
    assert isinstance(warning.message, ContextWindowWarning)
    assert isinstance(warning.message.event, OverBudget)
    assert warning.message.event.tokens > warning.message.event.budget == 300
    assert warning.filename == __file__
