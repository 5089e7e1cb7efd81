"""What the list that `manage` returns tells: what it leaves out, and by which id that is recalled."""

from __future__ import annotations

import copy
import json
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import RecallError, manage
from context_window.recall import recall_tool
from tests.integrations.test_managed_messages import FORMATS, conversation

MERGED = ("anthropic", "google", "converse")
"""Formats in which a message may get the blocks of a note that follows it."""
TOOLS = {"anthropic": "anthropic", "responses": "openai-responses", "google": "google"}


@given(st.sampled_from(sorted(FORMATS)), st.integers(1, 30), st.sampled_from((2_500, 4_000, 50_000)))
def test_a_message_is_whole_or_among_the_changes_and_what_is_gone_can_be_recalled(name: str, turns: int, budget: int) -> None:
    model, messages = conversation(name, turns)
    view = manage(messages, model=model, max_tokens=budget)
    whole = {id(message) for message in view}
    for index, message in enumerate(messages):
        assert not (id(message) in whole and index in view.changes)
        assert id(message) in whole or index in view.changes or name in MERGED
    assert view.plan.after <= view.plan.budget == budget
    assert (view.plan.after < view.plan.before) == bool(view.changes)
    for index, decisions in view.changes.items():
        if "line 39" in json.dumps(messages[index]):
            assert "line 0: something that was printed" in view.recall(decisions[0].item_id)


@pytest.mark.parametrize("name", FORMATS)
def test_placeholders_name_ids_where_the_recall_tool_is_sent(name: str) -> None:
    """and each of them is answered"""
    model, messages = conversation(name, 20)
    messages = json.loads(json.dumps(messages).replace("line 0", "word " * 4_000))
    tool = recall_tool(TOOLS.get(name, "openai"))  # type: ignore[arg-type]
    pattern = r"\b[0-9a-f]{12}\b"
    assert not re.findall(pattern, json.dumps(manage(messages, model=model, max_tokens=8_000)))
    for passed in (tool, tool.definition):
        view = manage(messages, model=model, max_tokens=8_000, tools=[passed])
        ids = re.findall(pattern, json.dumps(view))
        assert ids
        assert all("word word" in view.recall(id) or "ls" in view.recall(id) for id in ids)
        assert "something that was printed" in view.recall(query="something that was printed")
        with pytest.raises(RecallError, match="placeholders name the ids"):
            view.recall("nothing")


def test_copies_are_plain_lists() -> None:
    """so that a framework can store and send it"""
    model, messages = conversation("chat", 20)
    view = manage(messages, model=model, max_tokens=4_000)
    for copied in (copy.deepcopy(view), copy.copy(view), pickle.loads(pickle.dumps(view)), json.loads(json.dumps(view)), view[:]):
        assert type(copied) is list
        assert copied == view
