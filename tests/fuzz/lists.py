"""The target `lists`: whatever JSON a list of messages holds, `manage` returns a list of the same kind or raises an error of ours."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

from context_window import ContextWindowError, ContextWindowWarning, manage
from session import SessionError
from tests.integrations.test_managed_formats import FORMATS, Turn
from tests.integrations.test_managed_messages import FORMATS as SERVED
from tests.integrations.test_managed_messages import conversation

from .checks import REFUSED
from .seeds import Seed, make_seed

BUDGETS = (2_000, 4_000, 50_000)
TURNS = [Turn(2, is_said=True, is_thought=True), Turn(1), Turn(1, is_error=True), Turn(0, is_said=True), Turn(1)]


def list_seeds() -> Iterator[Seed]:
    """Yield a conversation in each format. It fits the largest of the windows only."""
    for name in ("anthropic", "chat", "responses", "google"):
        yield make_seed(name, "list", "document", conversation(name, 6)[1], "lists")
    for name, (_, make, _) in FORMATS.items():
        yield make_seed(name, "list", "document", make(TURNS), "lists")


def check_list(seed: Seed, messages: Any, number: int) -> str:
    """Check the promise for one mutant.

    Args:
        seed: The seed, named after its format.
        messages: The mutant.
        number: Decides the window.
    """
    try:
        messages = json.loads(json.dumps(messages))
    except (TypeError, ValueError, RecursionError):
        return REFUSED  # no JSON
    model = (FORMATS.get(seed.name) or SERVED[seed.name])[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ContextWindowWarning)  # of what it mends
            view = manage(messages, model=model, max_tokens=BUDGETS[number % len(BUDGETS)])
    except (ContextWindowError, SessionError):
        return REFUSED
    assert isinstance(view, list)
    assert all(isinstance(message, dict) for message in view)
    return "a list"
