"""What the gateway remembers of a conversation saves work, and is given up when no request comes."""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from context_window.gateway.known_bodies import KnownBodies
from hypothesis import given, settings
from hypothesis import strategies as st

from context_window import ContextWindow
from context_window.gateway.google_call_ids import CallIds
from context_window.gateway.openai_chat import ChatWire
from context_window.gateway.own_refusals import OwnRefusals
from context_window.gateway.windows import KINDS, Windows
from context_window.gateway.wire_format import WireFormat
from context_window.integrations.past_refusals import PastRefusal
from session import Session
from tests.gateway.test_gateway_http import post, says, upstream_that
from tests.gateway.test_gateway_properties import FORMATS, Step, steps
from tests.gateway.test_gateway_shared_views import Provider, accepted, growing
from tests.support.gateways import gateway

Json = dict[str, Any]


@pytest.mark.no_cover
@pytest.mark.parametrize(("wire", "path", "body_of", "validate", "field"), FORMATS)
@settings(max_examples=max(1, settings().max_examples // 8))  # each example makes two requests for every step
@given(
    conversation=steps, limit=st.integers(300, 2_500), says_figures=st.booleans(), pauses=st.lists(st.booleans(), min_size=14, max_size=14)
)
def test_a_conversation_that_was_forgotten_goes_on_as_if_it_had_not_been(
    wire: WireFormat,
    path: str,
    body_of: Callable[[list[Step]], Json],
    validate: Callable[[Json], list[object]],
    field: str,
    conversation: list[Step],
    limit: int,
    says_figures: bool,
    pauses: list[bool],
) -> None:
    """A view is the same without what was remembered, also after refusals, and no prompt is refused for the second time."""
    window = ContextWindow(max_tokens=3_000, keep_first_message=True)
    lasting, forgetful = Provider(limit, says_figures=says_figures), Provider(limit, says_figures=says_figures)
    remembering, forgetting = Windows(window), Windows(window)
    for length, is_pause in zip(range(1, len(conversation) + 1), pauses, strict=False):
        if is_pause:
            forgetting.forget_idle(0.0)
        body = body_of(conversation[:length])
        sent = accepted(forgetting, wire, path, body, forgetful)
        assert sent == accepted(remembering, wire, path, body, lasting)
        assert validate(sent) == []
    assert forgetful.refused == lasting.refused


def test_only_bodies_that_are_idle_are_forgotten() -> None:
    now = 100.0
    bodies = KnownBodies(clock=lambda: now)
    first, second = (json.dumps(growing(3, prefix)).encode() for prefix in "ab")
    message = _first_message(bodies, first)
    now = 130.0
    other = _first_message(bodies, second)
    bodies.forget_idle(20.0)
    assert _first_message(bodies, second) is other
    assert _first_message(bodies, first) == message
    assert _first_message(bodies, first) is not message


def _first_message(bodies: KnownBodies, body: bytes) -> Any:
    value = bodies.read(body)
    assert value is not None
    return value["messages"][0]


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


def test_hashes_of_tools_are_bounded_and_forgotten() -> None:
    windows, chat = Windows(ContextWindow(max_tokens=1_000), are_frozen=True), ChatWire()
    for number in range(KINDS + 3):
        body = {"model": "gpt-5", "messages": [{"role": "user", "content": "a"}], "tools": [{"name": str(number % 2)}]}
        conversation = chat.conversation("/v1/chat/completions", body)
        assert conversation is not None
        windows.fit(chat, conversation)
    assert 0 < len(windows._tools) <= KINDS
    assert len(windows._trackers) == 2
    windows.forget_idle(0.0)
    assert windows._tools == {}


def test_call_ids_of_an_idle_conversation_are_forgotten() -> None:
    now = 100.0
    ids, contents = CallIds(lambda: now), [{"role": "user", "parts": [{"text": "a"}]}]
    (first,) = ids.added_to(contents)
    now = 110.0
    ids.forget_idle(20.0)
    assert ids.added_to(contents)[0] is first
    ids.forget_idle(0.0)
    assert ids.added_to(contents) == [first]
    assert ids.added_to(contents)[0] is not first


def test_own_refusals_are_bounded() -> None:
    refusals = OwnRefusals(kept=2)
    past = [PastRefusal(number, 0, b"d", 5, 4) for number in range(3)]
    for number, refusal in enumerate(past):
        refusals.add(bytes([number]), refusal)
    assert [refusals.known(bytes([number])) for number in range(3)] == [[], [past[1]], [past[2]]]
