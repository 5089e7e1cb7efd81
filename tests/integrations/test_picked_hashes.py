"""Hashes of the messages that a view shows are those of their contents, although most are taken from the framework's own messages."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from context_window import ContextWindow, ContextWindowManager
from context_window.gateway.openai_chat import ChatAdapter
from context_window.integrations.conversation_tracker import ConversationTracker
from context_window.integrations.message_hashes import EMPTY_HASH, extend_hash
from session.session import Session
from tests.support.counting import Letters

Json = dict[str, Any]


def turn(session: Session, number: int) -> None:
    session.add_message("user", f"question {number}")
    call = session.add_function_call("read", {"n": number})
    session.add_function_output("read", "line\n" * 40, call.call_id)
    session.add_message("assistant", f"answer {number}")


@pytest.mark.parametrize("seed", range(8))
def test_hashes_of_a_view_are_those_of_its_messages(seed: int) -> None:
    """after trims, and changes in place by the framework of its own messages and of those that were returned"""
    random, session, adapter = Random(seed), Session(), ChatAdapter()
    manager = ContextWindowManager("gpt-5", token_counter=Letters(), context_window=ContextWindow(max_tokens=1_500))
    tracker = ConversationTracker(manager, adapter)
    messages: list[Json] = []
    has_made = False
    for number in range(30):
        turn(session, number)
        messages += session.to_openai_messages()[len(messages) :]
        returned = tracker.fit(messages)
        (tracked,) = tracker._remembered.latest[:1]
        digests = list(map(adapter.digest, returned))
        hashes = [EMPTY_HASH]
        for digest in digests:
            hashes.append(extend_hash(hashes[-1], digest))
        assert tracked.returned.digests == digests
        assert tracked.returned.hashes == hashes
        has_made = has_made or bool(tracked.made.digests)
        if random.random() < 0.4:
            message = random.choice(returned)
            message["content"] = f"changed {number}"
    assert has_made
