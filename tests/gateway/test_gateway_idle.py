"""What the gateway remembers of a conversation saves work, and is given up when no request comes."""

from __future__ import annotations

import json
import time
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_window import ContextWindow
from context_window.gateway.openai_chat import ChatWire
from context_window.gateway.own_refusals import MOST, OwnRefusals
from context_window.gateway.windows import KINDS, Windows
from context_window.integrations.past_refusals import PastRefusal
from session import Session
from tests.gateway.test_gateway_http import post, says, upstream_that
from tests.gateway.test_gateway_properties import Step, WireCase, in_every_format, steps
from tests.gateway.test_gateway_shared_views import Provider, accepted, growing
from tests.support.gateways import gateway

Json = dict[str, Any]


@pytest.mark.no_cover
@in_every_format
@settings(max_examples=max(1, settings().max_examples // 8))  # each example makes two requests for every step
@given(
    conversation=steps, limit=st.integers(300, 2_500), says_figures=st.booleans(), pauses=st.lists(st.booleans(), min_size=14, max_size=14)
)
def test_a_conversation_that_was_forgotten_goes_on_as_if_it_had_not_been(
    case: WireCase, conversation: list[Step], limit: int, says_figures: bool, pauses: list[bool]
) -> None:
    """A view is the same with nothing remembered, also after refusals, and no prompt is refused for the second time."""
    window = ContextWindow(max_tokens=3_000, keep_first_message=True)
    lasting, forgetful = Provider(limit, says_figures=says_figures), Provider(limit, says_figures=says_figures)
    remembering, forgetting = Windows(window), Windows(window)
    for length, is_pause in zip(range(1, len(conversation) + 1), pauses, strict=False):
        if is_pause:
            forgetting.forget_idle(0.0)
        body = case.body_of(conversation[:length])
        sent = accepted(forgetting, case, body, forgetful)
        assert sent == accepted(remembering, case, body, lasting)
        assert case.validate(sent) == []
    assert forgetful.refused == lasting.refused


def test_a_gateway_gives_up_what_it_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of an idle conversation stays in memory, and its next request goes through like the others."""
    sessions: weakref.WeakSet[Session] = weakref.WeakSet()
    begin = Session.__init__

    def noted(self: Session, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        sessions.add(self)

    monkeypatch.setattr(Session, "__init__", noted)
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 1_000, idle_seconds=0.2) as address:
        for turns in (8, 9):
            assert post(address, body=json.dumps(growing(turns)).encode()).status_code == 200
            assert sessions
            deadline = time.monotonic() + 30
            while len(sessions) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert len(sessions) == 0


def test_kinds_of_requests_are_bounded() -> None:
    windows, chat = Windows(ContextWindow(max_tokens=1_000)), ChatWire()
    for number in range(KINDS + 3):
        body = {"model": "gpt-5", "messages": [{"role": "user", "content": "a"}], "tools": [{"name": str(number)}]}
        conversation = chat.conversation("/v1/chat/completions", body)
        assert conversation is not None
        windows.fit(chat, conversation)
    assert len(windows._trackers) == KINDS


def test_own_refusals_are_bounded() -> None:
    refusals = OwnRefusals(kept=2)
    past = [PastRefusal(number, 0, b"d", 5, 4) for number in range(3)]
    for number, refusal in enumerate(past):
        refusals.add(bytes([number]), refusal)
    assert [refusals.known(bytes([number])) for number in range(3)] == [[], [past[1]], [past[2]]]
    for number in range(MOST + 1):
        refusals.add(b"often", PastRefusal(number, 0, b"d", 5, 4))
    assert [past.messages for past in refusals.known(b"often")] == list(range(1, MOST + 1))
