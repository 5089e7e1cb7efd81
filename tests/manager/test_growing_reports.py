"""A report on contents that grew since the last report is the one that a first report would be."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from session.session import Session
from tests.support.any_logs import ITEMS
from tests.support.counting import Letters
from tests.support.strategies import sessions
from tests.support.twin import cost


def a_manager(budget: int) -> ContextWindowManager:
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=budget, output_reserve=0))


@given(st.data())
def test_reports_go_on(data: st.DataObject) -> None:
    """usage() equals the first report of another manager: on the session, and on the view that was processed last, alive or not"""
    items = data.draw(st.one_of(sessions().map(lambda session: list(session.items)), st.lists(ITEMS, max_size=25)))
    budget = max(100, sum(map(cost, items)) * data.draw(st.sampled_from([30, 60, 200])) // 100)
    manager, session, views = a_manager(budget), Session(id="s"), []
    for position, item in enumerate(items):
        session.append(item)
        if position % 3 == 2:
            view = manager.process_session(session)
            event(f"the view is the log: {view.items == session.items}")
            views.append(view if data.draw(st.booleans()) else None)
            del view
            other, same = a_manager(budget), Session(list(session.items), id="s")
            other.process_session(same)
            assert manager.usage() == other.usage()
        if data.draw(st.booleans()):
            assert manager.usage(session) == a_manager(budget).usage(Session(list(session.items), id="s"))
