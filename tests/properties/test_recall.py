"""Guarantee: recall."""

from __future__ import annotations

import json

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from context_window.errors import RecallError
from context_window.recall import content_of, recall, recall_tool
from context_window.trimming.placeholders import image_id
from session.items import FunctionCallOutput, Message
from session.parts import Text
from session.session import Session
from tests.support.harness import process
from tests.support.strategies import limits, sessions
from tests.support.twin import cost


@given(st.data())
def test_recall(data: st.DataObject) -> None:
    """everything taken out comes back byte-exact by its id"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    outcome = process(log, bounds)
    tool = recall_tool("anthropic")
    for decision in outcome.plan.changes:
        original = log.get_by_id(decision.item_id)
        assert original is not None
        for source in (log, outcome.view):
            assert recall(source, decision.item_id) is original
        answer = tool.handle(log, json.dumps({"id": decision.item_id}))
        assert (answer.output, answer.is_error) == (content_of(original), False)
        for place in decision.images:
            event("image")
            assert isinstance(original, Message | FunctionCallOutput)
            parts = original.content if isinstance(original, Message) else original.output
            assert recall(log, image_id(original, place)) is parts[place]


@given(st.data())
def test_every_placeholder_names_an_id_that_gives_back_its_content(data: st.DataObject) -> None:
    """Placeholders name the id for `recall`."""
    log = data.draw(sessions())
    outcome = process(log, data.draw(limits(sum(map(cost, log.items)))))
    for decision in outcome.plan.changes:
        shown = outcome.view.get_by_id(decision.item_id)
        if isinstance(shown, Message | FunctionCallOutput):
            texts = [part.text for part in (shown.content if isinstance(shown, Message) else shown.output) if isinstance(part, Text)]
            named = [text.rpartition("recall id ")[2].partition("]")[0] for text in texts if "recall id " in text]
            assert named
            for one in named:
                assert recall(log, one) is not None


@given(sessions(), st.text())
def test_what_is_not_there_is_said_so(log: Session, id: str) -> None:
    """An unknown id is an error that names it, for a caller and for the model."""
    if log.get_by_id(id) is not None:
        return
    with pytest.raises(RecallError) as caught:
        recall(log, id)
    assert caught.value.item_id == id
    assert recall_tool("openai").handle(log, {"id": id}).is_error
    assert recall_tool("google").handle(log, id).is_error


def test_a_saved_view_says_where_its_content_is() -> None:
    log = Session()
    log.add_message("user", "read it")
    call = log.add_function_call("Read", {})
    output = log.add_function_output("Read", "x" * 900, call.call_id)
    log.add_message("assistant", "done")
    log.add_message("user", "thanks")
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=200), token_counter=len)
    view = manager.process_session(log)
    assert manager.recall(view, output.id) is output
    saved = Session.from_dict(view.to_dict())
    with pytest.raises(RecallError, match="recall it from the log"):
        manager.recall(saved, output.id)
