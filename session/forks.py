"""The items that a fork takes along. Merging lives in `merge.py`, filters in `copies.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace as changed

from .copies import CopyFilter, active_config, is_instruction, remaining_positions, tool_names
from .errors import FormatError, short
from .items import AgentConfigUpdate, AgentHandoff, FunctionCall, Message
from .rewrite import Excerpt, IndexedLog, Piece, assemble, checked_count, index_log, last_turns_start
from .summary import SUB_AGENT_HEADER
from .units import ReadableLog, is_summary, prompts_in_force


def filtered_fork(session: ReadableLog, recent_turns: int, tools: Iterable[str | Callable[..., object]] | None) -> Excerpt:
    """Return instructions, the config in force, handoffs, the summary, and the last turns.

    Config updates come after the leading instructions, without those that are no longer in force. A tool unit that reaches into the last
    turns comes along completely.
    """
    start = last_turns_start(session.items, checked_count(recent_turns, "fork_filtered.recent_turns", 1))
    copy_filter = CopyFilter(config_updates=True, tools=tool_names(tools))
    log = index_log(session)
    wanted = _recent(log, start) | _summaries(log, start)
    wanted |= {index for index in range(start) if is_instruction(log.items[index]) or isinstance(log.items[index], AgentHandoff)}
    wanted.difference_update(log.groups.replaced)
    remaining = remaining_positions(log, lambda index: copy_filter.excludes(log.items[index]))
    positions = [index for index in remaining if index in wanted]
    pieces = [log.piece(index) for index in positions]
    for first, update in reversed(_config_in_force(session)):  # behind the leading instructions that it was behind
        leading = next((at for at, index in enumerate(positions) if index > first or not is_instruction(log.items[index])), len(positions))
        pieces.insert(leading, (update, None))
    return assemble(pieces, log.breaks)


def brief_fork(session: ReadableLog, instructions: str, task_brief: str | None, agent_id: str | None, recent_turns: int) -> Excerpt:
    """Return new instructions, the last turns if requested, and the task as a user message.

    The last turns come without instructions, config updates and unanswered calls, which the task would interrupt. An earlier handoff
    comes along if it is the last one and hands over to this agent.
    """
    if not isinstance(instructions, str) or not instructions.strip():
        raise FormatError("fork_brief.instructions", f"{short(instructions)}; say what the agent is to do")
    if not (task_brief is None or isinstance(task_brief, str)):
        raise FormatError("fork_brief.task_brief", f"{short(task_brief)} is not a text")
    start = last_turns_start(session.items, checked_count(recent_turns, "fork_brief.recent_turns", 0))
    log = index_log(session)

    def is_excluded(index: int) -> bool:
        item = log.items[index]
        is_unanswered = isinstance(item, FunctionCall) and not log.groups.answered[index]
        return is_unanswered or isinstance(item, AgentConfigUpdate) or is_instruction(item)

    wanted = _recent(log, start) | _handoff(log, agent_id)
    pieces: list[Piece] = [(Message("system", instructions, agent_id=agent_id), None)]
    pieces += [log.piece(index) for index in remaining_positions(log, is_excluded) if index in wanted]
    if task_brief and task_brief.strip():
        pieces.append((Message("user", task_brief, agent_id=agent_id), None))
    return assemble(pieces, log.breaks)


def _recent(log: IndexedLog, start: int) -> set[int]:
    """Return the positions from `start` on, and earlier positions of units that reach that far."""
    positions = set(range(start, len(log.items)))
    for head in {log.groups.head[index] for index in positions}:
        if head < start:
            positions.update(log.groups.members(head))
    return positions


def _summaries(log: IndexedLog, start: int) -> set[int]:
    """Return the last summary of the conversation before `start`, and sub-agents' summaries after it."""
    positions = set()
    for index in range(start - 1, -1, -1):
        item = log.items[index]
        if is_summary(item):
            positions.add(index)
            if not (isinstance(item, Message) and item.text.startswith(SUB_AGENT_HEADER)):
                break
    return positions


def _handoff(log: IndexedLog, agent_id: str | None) -> set[int]:
    """Return the position of the last handoff, if it is to this agent or `agent_id` is None."""
    for index in range(len(log.items) - 1, -1, -1):
        item = log.items[index]
        if isinstance(item, AgentHandoff):
            return {index} if agent_id in (None, item.to_agent) else set()
    return set()


def _config_in_force(session: ReadableLog) -> list[tuple[int, AgentConfigUpdate]]:
    """Return the updates whose instructions are in force, each after the position it had, in order.

    The log's last update is among them, completed by the instructions of its agent and the tools that earlier ones left in force. It
    keeps its id, so a merge back recognizes it. The list is empty if nothing is in force.
    """
    updates = [(index, item) for index, item in enumerate(session.items) if isinstance(item, AgentConfigUpdate)]
    in_force = set(prompts_in_force(session.items))
    tools = active_config(session, None)[1]
    config = [(index, update) for index, update in updates if index in in_force]
    if not config and tools is None:
        return []
    index, last = updates[-1]
    if index not in in_force:
        if config and config[-1][1].agent_id == last.agent_id:
            index, earlier = config.pop()
            last = changed(last, instructions=earlier.instructions)
        config.append((index, last))
    if last.tools != tools:
        config[-1] = index, changed(last, tools=tools)
    return config
