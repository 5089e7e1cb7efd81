"""Decides which items a copy keeps, and reads the config in force at a position. Changes nothing.

Some items only make sense together. If a tool filter drops a call, its output goes too. If all calls of a response go, its reasoning
goes too: providers accept reasoning back only with its calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .errors import FormatError, PositionError, short
from .items import AgentConfigUpdate, AgentHandoff, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from .parts import Text
from .rewrite import IndexedLog
from .sanitize import clean
from .units import ReadableLog, prompt_text, prompts_in_force


@dataclass(frozen=True, slots=True)
class CopyFilter:
    """What a copy leaves out. `tools`: those whose calls stay; None for all.

    `agent_id`: whose items stay, along with handoffs, and config updates and instructions of no agent; None for every agent.
    """

    system_messages: bool = False
    instructions: bool = False
    empty_messages: bool = False
    handoffs: bool = False
    config_updates: bool = False
    tools: frozenset[str] | None = None
    agent_id: str | None = None

    def excludes(self, item: Item) -> bool:
        """True if the item itself is left out, regardless of the items that belong to it."""
        if isinstance(item, AgentHandoff):
            return self.handoffs
        has_no_agent = item.agent_id is None and (is_instruction(item) or isinstance(item, AgentConfigUpdate))
        if self.agent_id is not None and item.agent_id != self.agent_id and not has_no_agent:
            return True
        if isinstance(item, AgentConfigUpdate):
            return self.config_updates
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
    """True for a system or developer message."""
    return isinstance(item, Message) and item.role in ("system", "developer")


def is_empty(message: Message) -> bool:
    """True if a message holds nothing but white space."""
    return not any(not isinstance(part, Text) or part.text.strip() for part in message.content)


def tool_names(tools: Iterable[str | Callable[..., object]] | None) -> frozenset[str] | None:
    """Return the names of tools, given as names or as functions; None for None. Raises FormatError for anything else."""
    if tools is None:
        return None
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise FormatError("tools", f"expected a list of names or functions, got {short(tools)}")
    names = []
    for index, tool in enumerate(tools):
        name = tool if isinstance(tool, str) else getattr(tool, "__name__", None)
        if not isinstance(name, str):
            raise FormatError(f"tools[{index}]", f"{short(tool)} is neither the name of a tool nor a function")
        names.append(name)
    return frozenset(names)


def clean_agent_id(agent_id: str | None, where: str) -> str | None:
    """Return the agent's id as items store it; None for None. Raises FormatError if it is neither a str nor None."""
    if agent_id is None:
        return None
    if not isinstance(agent_id, str):
        raise FormatError(where, f"{short(agent_id)} is not the id of an agent")
    return clean(agent_id)


def remaining_positions(log: IndexedLog, is_excluded: Callable[[int], bool]) -> list[int]:
    """Return the positions that stay when some items, and everything that depends on them, are left out.

    `is_excluded` is not called for outputs of recorded calls: they follow their calls.
    """
    dropped = {index for index in range(len(log.items)) if index not in log.calls and is_excluded(index)}
    dropped.update(output for output, call in log.calls.items() if call in dropped)
    calls = [index for index, item in enumerate(log.items) if isinstance(item, FunctionCall)]
    with_dropped_calls = {log.response(index) for index in calls if index in dropped}
    without_calls = with_dropped_calls - {log.response(index) for index in calls if index not in dropped}
    return [
        index
        for index, item in enumerate(log.items)
        if index not in dropped and not (isinstance(item, Reasoning) and log.response(index) in without_calls)
    ]


def active_config(session: ReadableLog, target: str | int | None) -> tuple[str | None, tuple[str, ...] | None]:
    """Return what `Session.active_config_at` does."""
    index = _position(session, target)
    items = session.items[: index + 1]
    texts = [prompt_text(items[position]) or "" for position in prompts_in_force(items)]
    tools = next((item.tools for item in reversed(items) if isinstance(item, AgentConfigUpdate) and item.tools is not None), None)
    return ("\n\n".join(text for text in texts if text.strip()) if texts else None), tools


def _position(session: ReadableLog, target: str | int | None) -> int:
    length = len(session.items)
    if target is None:
        return length - 1
    if isinstance(target, str):
        index = session.position(target)
        return length - 1 if index is None else index
    if not isinstance(target, int) or isinstance(target, bool):
        raise FormatError("active_config_at.target", f"{short(target)}; pass an item's id, its position, or None for the end")
    if not -length <= target < length:
        raise PositionError(target, length)
    return target % length
