"""Guarantee: requests share nothing with the log or with one another."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from session.providers.anthropic import to_anthropic
from session.providers.google import to_google
from session.providers.openai_chat import to_openai_chat
from session.providers.openai_responses import to_openai_responses
from session.session import Session
from tests.support.any_logs import logs
from tests.support.strategies import sessions

FORMATS: dict[str, Callable[[Session], Any]] = {
    "anthropic": to_anthropic,
    "anthropic with marks": lambda session: to_anthropic(session, caching=True),
    "openai chat": to_openai_chat,
    "openai responses": to_openai_responses,
    "google": to_google,
}


def spoil(value: Any) -> None:
    """Change everything that can be changed in a request."""
    if isinstance(value, dict):
        for member in value.values():
            spoil(member)
        value["cache_control"] = {"type": "ephemeral"}
        value.pop("role", None)
    elif isinstance(value, list | tuple):
        for member in value:
            spoil(member)
        if isinstance(value, list):
            value.append("spoilt")


@given(st.sampled_from(sorted(FORMATS)), st.one_of(logs(), sessions()))
def test_what_a_caller_does_to_a_request_changes_neither_the_log_nor_the_next_request(name: str, session: Session) -> None:
    request, before = FORMATS[name](session), session.to_dict()
    text = json.dumps(request)
    spoil(request)
    assert session.to_dict() == before
    assert json.dumps(FORMATS[name](session)) == text
