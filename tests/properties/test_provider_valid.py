"""Guarantee: provider_valid, of views. Converters of any log at all: `tests/providers/test_every_log.py`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from session.providers import Violation, validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from session.providers.anthropic import to_anthropic
from session.providers.google import to_google
from session.providers.openai_chat import to_openai_chat
from session.providers.openai_responses import to_openai_responses
from session.session import Session
from session.units import request_points
from tests.support.harness import copy_of, process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost

FORMATS: dict[str, tuple[Callable[[Session], Any], Callable[[Any], list[Violation]]]] = {
    "anthropic": (lambda session: to_anthropic(session, caching=True), validate_anthropic),
    "openai chat": (to_openai_chat, validate_openai_chat),
    "openai responses": (to_openai_responses, validate_openai_responses),
    "google": (to_google, validate_google),
}


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_provider_valid(name: str, data: st.DataObject) -> None:
    """every view of a log cut at a request point, in every wire format, passes the strict rules of docs/provider-rules.md"""
    convert, validate = FORMATS[name]
    full_log = data.draw(sessions())
    log = copy_of(full_log)
    for item in full_log.items[: data.draw(st.sampled_from(request_points(full_log) or [0]))]:
        log.append(item)
    if not log.items:
        return
    bounds = data.draw(limits(sum(map(cost, log.items))))
    for outcome in (process(log, bounds), trim(log, bounds)):
        request = convert(outcome.view)
        event(f"trims: {bool(outcome.plan.changes)}")
        if request and (name.startswith("openai") or request[0]):  # nothing but system messages is no request
            assert validate(request) == []
        json.dumps(request, allow_nan=False).encode()
