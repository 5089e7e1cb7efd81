"""Hashes of the messages that a view shows are those of their contents, although most are taken from the framework's own messages."""

from __future__ import annotations

from itertools import accumulate
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from context_window.gateway.openai_chat import ChatAdapter
from context_window.integrations.conversation_tracker import ConversationTracker
from context_window.integrations.message_hashes import EMPTY_HASH, extend_hash
from session.session import Session
from tests.gateway.test_gateway_properties import Step, chat_body, steps
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


@given(conversation=steps, tokens=st.integers(200, 2_000), kept=st.lists(st.integers(0, 40), min_size=14, max_size=14))
def test_hashes_that_serve_again_are_those_of_the_messages(conversation: list[Step], tokens: int, kept: list[int]) -> None:
    """If nobody changes messages, the hashes of those that were returned last serve again: the same objects, and behind them equal ones."""
    adapter = ChatAdapter()
    manager = ContextWindowManager("gpt-5", context_window=ContextWindow(max_tokens=tokens, keep_first_message=True))
    tracker = ConversationTracker(manager, adapter, are_frozen=True)
    messages: list[Json] = []
    for length, same in zip(range(1, len(conversation) + 1), kept, strict=False):
        new = chat_body(conversation[:length])["messages"]
        messages = [*messages[:same], *new[len(messages[:same]) :]]
        digests = list(map(adapter.digest, tracker.fit(messages)))
        (tracked,) = tracker._remembered.latest
        assert tracked.returned.digests == digests
        assert tracked.returned.hashes == list(accumulate(digests, extend_hash, initial=EMPTY_HASH))
