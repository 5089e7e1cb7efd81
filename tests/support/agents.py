"""A model that keeps an agent busy, in no framework's words, and what every request that an adapter has fitted must be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from context_window import ContextWindow, ContextWindowManager
from tests.support.counting import Letters
from tests.support.stubs import Block, Call, Say, Think

FOUND = 300
"""Letters of what the tool finds."""


def busy(*, thinks: bool = True) -> Callable[[Mapping[str, Any]], Sequence[Block]]:
    """A model that looks things up twice, in two calls at once, and then is done; turn after turn."""
    asked = 0

    def model(request: Mapping[str, Any]) -> Sequence[Block]:
        nonlocal asked
        asked += 1
        thought: list[Block] = [Think(f"thought {asked}")] if thinks else []
        if asked % 3:
            return [*thought, Say(f"Let me look, {asked}."), Call("look", {"q": f"a{asked}"}), Call("look", {"q": f"b{asked}"})]
        return [*thought, Say(f"Done, {asked}.")]

    return model


def look(q: str) -> str:
    """Looks something up."""
    return f"found {q} ".ljust(FOUND, "x")


def manager(max_tokens: int = 4_000, **window: Any) -> ContextWindowManager:
    """A manager that counts letters, and raises where a view does not fit."""
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=max_tokens, strict=True, **window))


def letters(value: object) -> int:
    """Letters of all that a payload says: texts, names and arguments, without field names and ids."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        hidden = {"type", "id", "role", "call_id", "tool_use_id", "signature", "status", "encrypted_content", "data", "cache_control"}
        said = {name: member for name, member in value.items() if name not in hidden}
        return sum(len(json.dumps(member)) if name == "input" else letters(member) for name, member in said.items())
    return sum(map(letters, value)) if isinstance(value, list | tuple) else 0


def extends(later: Sequence[object], earlier: Sequence[object]) -> bool:
    """Whether a prompt begins with all of another, so that the provider's cache has it."""
    return list(later[: len(earlier)]) == list(earlier)
