"""The kinds of items."""

from __future__ import annotations

from collections.abc import Mapping

from session.items import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
)

from .definitions import Kind, Kinds

ORDER: tuple[Kind, ...] = ("message", "call", "output", "reasoning", "summary", "handoff", "config update")


def kinds_of(counts: Mapping[Kind, int]) -> Kinds:
    """Return the counts that are not zero, in a fixed order."""
    return tuple((kind, counts[kind]) for kind in ORDER if counts[kind])


def kind_of(item: Item) -> Kind:
    """Return an item's kind."""
    match item:
        case FunctionCallOutput():
            return "output"
        case FunctionCall():
            return "call"
        case Message():
            return "summary" if item.is_summary else "message"
        case Compaction():
            return "summary"
        case AgentHandoff():
            return "handoff"
        case AgentConfigUpdate():
            return "config update"
        case _:
            return "reasoning"
