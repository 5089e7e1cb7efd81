"""Shared by the tests of adapters: a framework-neutral scripted model that calls tools, and checks for fitted requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from context_window import ContextWindow, ContextWindowManager
from tests.support.counting import Letters
from tests.support.stubs import Block, Call, Say, Think

FOUND = 300
"""Letters in an output of the tool."""


def busy(*, thinks: bool = True) -> Callable[[Mapping[str, Any]], Sequence[Block]]:
    """Return a model that in every turn makes two parallel calls, twice, and then answers."""
    requests = 0

    def model(request: Mapping[str, Any]) -> Sequence[Block]:
        nonlocal requests
        requests += 1
        thought: list[Block] = [Think(f"thought {requests}")] if thinks else []
        if requests % 3:
            return [*thought, Say(f"Let me look, {requests}."), Call("look", {"q": f"a{requests}"}), Call("look", {"q": f"b{requests}"})]
        return [*thought, Say(f"Done, {requests}.")]

    return model


def look(q: str) -> str:
    """Looks something up."""
    return f"found {q} ".ljust(FOUND, "x")


def manager(max_tokens: int = 4_000, **window: Any) -> ContextWindowManager:
    """Return a strict manager that counts letters. It only trims, unless the test says otherwise."""
    limits = ContextWindow(max_tokens=max_tokens, strict=True, **{"compaction": False, **window})
    return ContextWindowManager(token_counter=Letters(), context_window=limits)


def letters(value: object) -> int:
    """Return the letters in a payload's texts, names and arguments, without field names and ids."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        hidden = {"type", "id", "role", "call_id", "tool_use_id", "signature", "status", "encrypted_content", "data", "cache_control"}
        visible = {name: member for name, member in value.items() if name not in hidden}
        return sum(len(json.dumps(member)) if name == "input" else letters(member) for name, member in visible.items())
    return sum(map(letters, value)) if isinstance(value, list | tuple) else 0


def extends(later: Sequence[object], earlier: Sequence[object]) -> bool:
    """True if a prompt begins with all of an earlier one, so that the provider's cache can be used."""
    return list(later[: len(earlier)]) == list(earlier)
