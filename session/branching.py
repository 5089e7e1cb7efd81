"""What the three kinds of fork take with them. Merging lives in `merging.py`; what a filter leaves out in `copying.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace as changed

from .copying import Choice, active_config, is_instruction, tool_names, without
from .errors import FormatError, short
from .excerpts import Excerpt, Piece, Reading, joined, read, turns_from, whole_number
from .items import AgentConfigUpdate, AgentHandoff, FunctionCall, Message
from .session import Session
from .summary import SUB_AGENT_HEADER
from .units import is_summary


def filtered(session: Session, recent_turns: int, tools: Iterable[str | Callable[..., object]] | None) -> Excerpt:
    """Instructions, the config in force, handoffs, the summary, and the last turns.

    The config becomes one update behind the leading instructions. Of a tool unit that reaches into the last turns, all stays.

    Raises:
        FormatError: `recent_turns` is below 1, or `tools` are no tools.
    """
    start = turns_from(session.items, whole_number(recent_turns, "fork_filtered.recent_turns", 1))
    choice = Choice(config_updates=True, tools=tool_names(tools))
    log = read(session)
    wanted = _recent(log, start) | _summaries(log, start)
    wanted |= {place for place in range(start) if is_instruction(log.items[place]) or isinstance(log.items[place], AgentHandoff)}
    pieces = [log.piece(place) for place in without(log, lambda place: choice.excludes(log.items[place])) if place in wanted]
    update = _config_in_force(session)
    if update is not None:
        leading = next((place for place, (item, _) in enumerate(pieces) if not is_instruction(item)), len(pieces))
        pieces.insert(leading, (update, None))
    return joined(pieces, log.breaks)


def brief(session: Session, instructions: str, task_brief: str | None, agent_id: str | None, recent_turns: int) -> Excerpt:
    """New instructions, the last turns where they are asked for, and the task as a user message.

    Of the last turns neither instructions nor config updates are taken, nor calls without an output: the task would interrupt them.
    An earlier handoff comes along if it is the last one and hands over to this agent.

    Raises:
        FormatError: The instructions say nothing, or `recent_turns` is below 0.
    """
    if not isinstance(instructions, str) or not instructions.strip():
        raise FormatError("fork_brief.instructions", f"{short(instructions)}; say what the agent is to do")
    if not (task_brief is None or isinstance(task_brief, str)):
        raise FormatError("fork_brief.task_brief", f"{short(task_brief)} is not a text")
    start = turns_from(session.items, whole_number(recent_turns, "fork_brief.recent_turns", 0))
    log = read(session)

    def excluded(place: int) -> bool:
        item = log.items[place]
        unanswered = isinstance(item, FunctionCall) and not log.groups.answered[place]
        return unanswered or isinstance(item, AgentConfigUpdate) or is_instruction(item)

    wanted = _recent(log, start) | _handoff(log, agent_id)
    pieces: list[Piece] = [(Message("system", instructions, agent_id=agent_id), None)]
    pieces += [log.piece(place) for place in without(log, excluded) if place in wanted]
    if task_brief and task_brief.strip():
        pieces.append((Message("user", task_brief, agent_id=agent_id), None))
    return joined(pieces, log.breaks)


def _recent(log: Reading, start: int) -> set[int]:
    """The positions from `start` on, and those before of units that reach so far."""
    places = set(range(start, len(log.items)))
    for head in {log.groups.head[place] for place in places}:
        if head < start:
            places.update(log.groups.members(head))
    return places


def _summaries(log: Reading, start: int) -> set[int]:
    """The conversation's summary, the last one before `start`, and what sub-agents summed up since."""
    found = set()
    for place in range(start - 1, -1, -1):
        item = log.items[place]
        if is_summary(item):
            found.add(place)
            if not (isinstance(item, Message) and item.text.startswith(SUB_AGENT_HEADER)):
                break
    return found


def _handoff(log: Reading, agent_id: str | None) -> set[int]:
    """The last handoff, if it hands over to this agent, or to whichever where none is named."""
    for place in range(len(log.items) - 1, -1, -1):
        item = log.items[place]
        if isinstance(item, AgentHandoff):
            return {place} if agent_id in (None, item.to_agent) else set()
    return set()


def _config_in_force(session: Session) -> AgentConfigUpdate | None:
    """The last update with what earlier ones left in force, under its own id: merged back, it is known again."""
    instructions, tools = active_config(session, None)
    updates = [item for item in session.items if isinstance(item, AgentConfigUpdate)]
    if not updates or (instructions is None and tools is None):
        return None
    last = updates[-1]
    return last if (last.instructions, last.tools) == (instructions, tools) else changed(last, instructions=instructions, tools=tools)
