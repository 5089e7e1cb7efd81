"""What the tool that wrote a log said about its window, at a place in the log, and this library's count of the messages there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from session.items import Compaction, FunctionCall, Item, MessageCategory

from ..decision.plan import ToolDefinition


@dataclass(frozen=True, slots=True)
class StatedUsage:
    """A tool's own account of its window, such as the output of Claude Code's `/context`. Amounts are tokens.

    Attributes:
        item_id: The item that states it.
        position: Number of items before it.
        window: The window.
        tokens: The sum of the rows.
        rows: The tool's rows by name, such as `system_prompt` and `messages`.
        counted: This library's count of the messages before the item: a check of the row `messages`.
    """

    item_id: str
    position: int
    window: int
    tokens: int
    rows: dict[str, int]
    counted: int


def stated_definitions(items: Sequence[Item]) -> list[ToolDefinition]:
    """Return the definitions of MCP tools that the last of the tool's accounts states, with the number of their calls in the items."""
    calls = Counter(item.name for item in items if isinstance(item, FunctionCall))
    stated: object = next((found for item in reversed(items) if (found := item.extra.get("tool_tokens"))), None)
    tokens = stated.items() if isinstance(stated, dict) else ()
    return [ToolDefinition(name, value, calls[name]) for name, value in tokens if type(value) is int and value > 0]


def stated_usage(items: Sequence[Item], count: Callable[[Item], int]) -> StatedUsage | None:
    """Return the last account in the items, `count` being the tokens of an item; None if there is none."""
    for position in range(len(items) - 1, -1, -1):
        figures = items[position].extra.get("context_usage")
        if isinstance(figures, dict) and all(type(value) is int for value in figures.values()) and {"window", "tokens"} <= figures.keys():
            before = items[:position]
            replaced = {name for item in before if isinstance(item, Compaction) for name in item.replaces}
            messages = [item for item in before if item.id not in replaced and item.category is not MessageCategory.SYSTEM]
            rows = {name: value for name, value in figures.items() if name not in ("window", "tokens")}
            counted = sum(map(count, messages))
            return StatedUsage(items[position].id, position, figures["window"], figures["tokens"], rows, counted)
    return None
