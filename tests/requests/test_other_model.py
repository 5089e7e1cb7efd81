"""`request(model=…)` and the manager's own model: where the view is made for another one, that is said."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest

from context_window import ContextWindowManager, ContextWindowWarning, Session

SESSION = Session()
SESSION.add_message("user", "Hi.")


@pytest.mark.parametrize(
    ("own", "limit", "provider", "model", "problem"),
    [
        ("gpt-5", None, "anthropic", "claude-sonnet-5-5", "goes to 'claude-sonnet-5-5' but its view has up to 272,000 tokens as 'gpt-5'"),
        ("claude-sonnet-5-5", None, "openai", "gpt-5", "goes to 'gpt-5', which takes 272,000, but its view has up to"),
        ("gpt-4.1", None, "openai-responses", "gpt-4o", "goes to 'gpt-4o', which takes 128,000"),
        ("gpt-4.1", 50_000, "openai", "gpt-4o", ""),  # the same tokenizer, and it fits
        ("gpt-5", None, "openai", "openai/gpt-5", ""),
        ("gpt-5", None, "openai", "my-deployment", ""),
        (None, 9_000, "openai", "gpt-5", ""),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_request_for_another_model_than_the_managers_is_warned_of(
    own: str | None, limit: int | None, provider: Any, model: str, problem: str, *, is_async: bool
) -> None:
    manager = ContextWindowManager(own, max_tokens=limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if is_async:
            request = asyncio.run(manager.arequest(SESSION, provider, model=model))
        else:
            request = manager.request(SESSION, provider, model=model)
    assert request["model"] == model
    assert [type(warning.message) for warning in caught] == [ContextWindowWarning] * bool(problem)
    assert all(problem in str(warning.message) and "use_model" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses", "google"])
def test_the_recall_tool_is_a_tool_of_a_request(provider: Any) -> None:
    """in whichever form it was made"""
    manager = ContextWindowManager(max_tokens=9_000)
    requests = [
        manager.request(SESSION, provider, model="m", tools=[tool])
        for form in ("anthropic", "openai", "openai-responses", "google")
        for tool in (manager.recall_tool(form), manager.recall_tool(form).definition)
    ]
    assert all(request == requests[0] for request in requests)
    assert "'recall'" in str(requests[0])
