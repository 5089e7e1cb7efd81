"""Which items of a log a copy takes, and what is in force at a place of it: read here, nothing is changed.

What a tool filter takes out goes with all that would be wrong without it: outputs with their calls, and the reasoning of a
response none of whose calls stay, which providers take back only together with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .door import clean
from .errors import FormatError, PositionError, UnknownItemError, short
from .excerpts import Reading
from .items import AgentConfigUpdate, AgentHandoff, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from .parts import Text
from .session import Session


@dataclass(frozen=True, slots=True)
class Choice:
    """What a copy leaves out.

    Attributes:
        system_messages: Messages of role system.
        instructions: Messages of role system or developer.
        empty_messages: Messages that hold nothing but white space.
        handoffs: Handoffs.
        config_updates: Config updates.
        tools: The tools whose calls stay; None for all.
        agent_id: The agent whose items stay, beside those of no agent and handoffs and config updates; None for every agent.
    """

    system_messages: bool = False
    instructions: bool = False
    empty_messages: bool = False
    handoffs: bool = False
    config_updates: bool = False
    tools: frozenset[str] | None = None
    agent_id: str | None = None

    def excludes(self, item: Item) -> bool:
        """Whether the item itself is left out, whatever happens to others."""
        if isinstance(item, AgentHandoff):
            return self.handoffs
        if isinstance(item, AgentConfigUpdate):
            return self.config_updates
        if self.agent_id is not None and item.agent_id not in (None, self.agent_id):
            return True
        if isinstance(item, FunctionCall | FunctionCallOutput):
            return self.tools is not None and item.name not in self.tools
        if not isinstance(item, Message):
            return False
        return (
            (self.system_messages and item.role == "system")
            or (self.instructions and is_instruction(item))
            or (self.empty_messages and is_empty(item))
        )


def is_instruction(item: Item) -> bool:
    """Whether the item is a system or developer message."""
    return isinstance(item, Message) and item.role in ("system", "developer")


def is_empty(message: Message) -> bool:
    """Whether a message holds nothing but white space."""
    return not any(not isinstance(part, Text) or part.text.strip() for part in message.content)


def tool_names(tools: Iterable[str | Callable[..., object]] | None) -> frozenset[str] | None:
    """The names of the tools; None for None.

    Args:
        tools: Names, or the functions themselves.

    Raises:
        FormatError: Something is neither.
    """
    if tools is None:
        return None
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise FormatError("tools", f"{short(tools)} where a list of names or functions is expected")
    names = []
    for place, tool in enumerate(tools):
        name = tool if isinstance(tool, str) else getattr(tool, "__name__", None)
        if not isinstance(name, str):
            raise FormatError(f"tools[{place}]", f"{short(tool)} is no name of a tool and no function")
        names.append(name)
    return frozenset(names)


def agent_name(agent_id: str | None, where: str) -> str | None:
    """The agent's name, in the form that items have it; None for None.

    Raises:
        FormatError: It is neither a text nor None.
    """
    if agent_id is None:
        return None
    if not isinstance(agent_id, str):
        raise FormatError(where, f"{short(agent_id)} is no name of an agent")
    return clean(agent_id)


def without(log: Reading, excluded: Callable[[int], bool]) -> list[int]:
    """The positions that stay when these items, and what cannot stay without them, are left out.

    Args:
        log: The log.
        excluded: Whether the item at a position is left out. Not asked about outputs that answer a call: they go by their calls.
    """
    gone = {place for place in range(len(log.items)) if place not in log.calls and excluded(place)}
    gone.update(output for output, call in log.calls.items() if call in gone)
    calls = [place for place, item in enumerate(log.items) if isinstance(item, FunctionCall)]
    bereft = {log.response(place) for place in calls if place in gone} - {log.response(place) for place in calls if place not in gone}
    return [
        place
        for place, item in enumerate(log.items)
        if place not in gone and not (isinstance(item, Reasoning) and log.response(place) in bereft)
    ]


def active_config(session: Session, target: str | int | None) -> tuple[str | None, tuple[str, ...] | None]:
    """The instructions and tools that config updates put in force, after the item at a place.

    Args:
        session: The log.
        target: An item's id, its position (from the end if negative), or None for the end.

    Raises:
        UnknownItemError: No item has this id.
        PositionError: No item has this position.
        FormatError: It is neither.
    """
    place = _position(session, target)
    instructions: str | None = None
    tools: tuple[str, ...] | None = None
    items = session.items
    for before in range(place, -1, -1):
        item = items[before]
        if isinstance(item, AgentConfigUpdate):
            instructions = item.instructions if instructions is None else instructions
            tools = item.tools if tools is None else tools
            if instructions is not None and tools is not None:
                break
    return instructions, tools


def _position(session: Session, target: str | int | None) -> int:
    length = len(session.items)
    if target is None:
        return length - 1
    if isinstance(target, str):
        place = session.position(target)
        if place is None:
            raise UnknownItemError(target)
        return place
    if not isinstance(target, int) or isinstance(target, bool):
        raise FormatError("active_config_at.target", f"{short(target)}; pass an item's id, its position, or None for the end")
    if not -length <= target < length:
        raise PositionError(target, length)
    return target % length
