"""The messages that show a view grow with it: equal to those that are picked from nothing, after every request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import is_

from hypothesis import event, given, reject
from hypothesis import strategies as st

from context_window.errors import ContextOverflowError
from context_window.integrations.conversation_tracker import ConversationTracker
from context_window.integrations.tracked_conversation import NOTHING_PICKED
from context_window.integrations.view_messages import view_messages
from session.items import Item, Message, Reasoning
from tests.support.agents import manager
from tests.support.compacting import Writer
from tests.support.lines import Line, LineAdapter

KINDS = ("user", "tool", "tool", "model", "thought", "linked", "linked")


class LinkingAdapter(LineAdapter):
    """Also has `thought`, a reasoning with a text, and texts that name the reasoning before them."""

    def items(self, message: Line, ids: Iterator[str]) -> list[Item]:
        if message.who == "thought":
            reasoning = Reasoning("hm " * 20, "sealed", id=next(ids), created_at=0.0)
            return [reasoning, Message("assistant", message.text, id=next(ids), created_at=0.0)]
        return super().items(message, ids)

    def without_reasoning_links(self, message: Line) -> Line:
        return replace(message, who="unlinked") if message.who == "linked" else message


@given(st.data())
def test_messages_that_go_on_from_the_last_ones_equal_those_picked_from_nothing(data: st.DataObject) -> None:
    """The same objects in the same order, also where the framework passes new ones with the same content"""
    kinds = data.draw(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from((4, 40, 120))), min_size=15, max_size=40))
    is_compacting = data.draw(st.sampled_from((False, False, True)))
    options = {"note_usage_at": data.draw(st.sampled_from((None, 0.8))), "compaction": is_compacting}
    window_manager = manager(data.draw(st.sampled_from((600, 1_200, 2_400))), **options)
    adapter = LinkingAdapter()
    adapter.is_message_whole_response = data.draw(st.booleans())
    tracker = ConversationTracker(window_manager, adapter)
    system, is_reloaded = data.draw(st.sampled_from(("", "be brief"))), data.draw(st.booleans())
    messages = [Line("user", "Go.")]
    went_on = 0
    for number, (kind, size) in enumerate(kinds):
        messages.append(Line(kind, f"{number} {'x' * size}"))
        if is_reloaded:
            messages = list(map(replace, messages))
        if data.draw(st.booleans()):
            continue
        if kind != "tool":
            messages.append(Line("user", f"And {number}?"))
        try:
            fitted = tracker.fit(messages, system=system, llm=Writer() if is_compacting else None)
        except ContextOverflowError:  # what must be kept and a summary can exceed the smallest window
            reject()
        (tracked,) = tracker._remembered._last_use
        view = window_manager.process_session(tracked.session)
        picked, tracked.picked = tracked.picked, NOTHING_PICKED
        went_on += picked is not NOTHING_PICKED and len(fitted) < len(messages)
        anew = view_messages(adapter, tracked, view)
        assert len(fitted) == len(anew)
        assert all(map(is_, fitted, anew))
        tracked.picked = picked
    event(f"went on with less than all: {went_on > 2}")
