"""Google's calls may have no ids: they get some that depend only on what came before."""

from __future__ import annotations

from typing import Any

from context_window.gateway.google_contents import GoogleAdapter
from context_window.integrations.tracked_conversation import ConversationCalls, item_ids
from session.items import FunctionCall, FunctionCallOutput


def test_a_response_without_an_id_answers_the_first_call_of_its_name() -> None:
    call, other, own = ({"functionCall": {"name": "read", **more}} for more in ({}, {"name": "write"}, {"id": "own"}))
    response, to_own = ({"functionResponse": {"name": "read", **more}} for more in ({}, {"id": "own"}))
    contents: list[list[Any]] = [[call, other, own, call, {"text": "a"}], [to_own, response], [response, response]]
    calls, adapter = ConversationCalls(), GoogleAdapter()
    ids = []
    for number, parts in enumerate(contents):
        items = adapter.items({"role": "user" if number else "model", "parts": parts}, item_ids(b""))
        ids.append([item.call_id for item in map(calls.complete, items) if isinstance(item, FunctionCall | FunctionCallOutput)])
    assert ids == [["call 1", "call 2", "own", "call 4"], ["own", "call 1"], ["call 4", "no call 4"]]
