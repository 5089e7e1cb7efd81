"""Guarantee: recall."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, ContextWindow, ContextWindowManager, Decision
from context_window.errors import RecallError
from context_window.recall import content_of, recall, recall_tool
from session.items import FunctionCall, FunctionCallOutput, Item, Message
from session.parts import Image, Part, Text
from session.session import Session
from tests.support.engine import part_id
from tests.support.harness import process
from tests.support.strategies import limits, sessions
from tests.support.twin import answers, cost


@given(st.data())
def test_recall(data: st.DataObject) -> None:
    """everything taken out comes back byte-exact by its id; the tool gives a call with its output"""
    log = data.draw(sessions())
    bounds = data.draw(limits(sum(map(cost, log.items))))
    outcome = process(log, bounds)
    tool, calls = recall_tool("anthropic"), answers(list(log.items))
    for decision in outcome.plan.changes:
        original = log.get_by_id(decision.item_id)
        assert original is not None
        for source in (log, outcome.view):
            assert recall(source, decision.item_id) is original
        answer = tool.handle(log, json.dumps({"id": decision.item_id}))
        outputs = [log.items[output] for output, call in calls.items() if call is not None and log.items[call] is original]
        expected = tuple(part for item in (original, *outputs) for part in content_of(item))
        assert (answer.output, answer.is_error) == (expected, False)
        for position in decision.images:
            event("image")
            assert recall(log, part_id(original, position)) is parts_of(original)[position]


@given(st.data())
def test_every_placeholder_names_the_id_that_gives_back_what_it_stands_for(data: st.DataObject) -> None:
    """Placeholders name the id for `recall`: of the very item that was cleared or cut, of the very image that was replaced."""
    log = data.draw(sessions())
    outcome = process(log, data.draw(limits(sum(map(cost, log.items)))))
    for decision in outcome.plan.changes:
        visible = outcome.view.get_by_id(decision.item_id)
        if visible is None:
            continue
        event(decision.action.name)
        original = log.get_by_id(decision.item_id)
        if isinstance(visible, FunctionCall):
            assert set(NAMED.findall(visible.arguments)) == {decision.item_id}
            assert isinstance(original, FunctionCall)
            assert json.loads(visible.arguments).keys() == json.loads(original.arguments).keys()
            continue
        named = [id for part in parts_of(visible) if isinstance(part, Text) for id in NAMED.findall(part.text)]
        lost = taken_out(original, visible, decision)
        assert len(named) == len(lost) > 0
        for source in (log, outcome.view):
            for id, entry in zip(named, lost, strict=True):
                assert recall(source, id) is entry


NAMED = re.compile(r"recall id ([^\]]*)\]")


def taken_out(item: Item | None, shown: Item, decision: Decision) -> list[Item | Image]:
    """The contents that the item's placeholders stand for, in their order."""
    assert item is not None
    if decision.action is Action.CLEAR:
        return [item]
    first_text = next((position for position, part in enumerate(parts_of(item)) if isinstance(part, Text)), None)
    lost: list[Item | Image] = []
    for position, part in enumerate(parts_of(item)):
        if position in decision.images:
            assert isinstance(part, Image)
            lost.append(part)
        elif isinstance(item, Message) and isinstance(part, Text):
            lost += [item] * (parts_of(shown)[position] != part)
        elif decision.cut is not None and position == first_text:
            lost.append(item)
    return lost


def parts_of(item: Item | None) -> tuple[Part, ...]:
    assert isinstance(item, Message | FunctionCallOutput)
    return item.content if isinstance(item, Message) else item.output


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
