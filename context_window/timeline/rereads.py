"""Finds files that a session read more than once, by the calls of tools that read files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from session.items import FunctionCall, FunctionCallOutput, Item

from ..decision.tool_rules import file_access, is_writer


@dataclass(slots=True)
class Reread:
    """A file that was read again.

    Attributes:
        path: The file, as the calls name it.
        reads: Number of reads.
        same: Reads with the arguments of an earlier read: they asked for the same part.
        tokens: Tokens of all reads but the first: calls and outputs.
        cost: Their lifetime cost in US dollars.
    """

    path: str
    reads: int = 0
    same: int = 0
    tokens: int = 0
    cost: float = 0.0


def rereads_of(items: Sequence[Item], tokens: Sequence[int], costs: Sequence[float]) -> list[Reread]:
    """Return the files that were read more than once, the most expensive first.

    Args:
        items: The log.
        tokens: Tokens of each item.
        costs: Lifetime cost of each item.
    """
    files: dict[str, Reread] = {}
    arguments: set[tuple[str, str]] = set()
    pending: dict[str, Reread] = {}  # by call id: rereads whose output has not come yet
    for position, item in enumerate(items):
        reread = None
        if isinstance(item, FunctionCall):
            access = None if is_writer(item.name, item.arguments) else file_access(item.name, item.arguments)
            if access is None:
                continue
            reread = files.setdefault(access.path, Reread(access.path))
            reread.reads += 1
            reread.same += (access.path, item.arguments) in arguments
            arguments.add((access.path, item.arguments))
            if reread.reads == 1:
                continue
            pending[item.call_id] = reread
        elif isinstance(item, FunctionCallOutput):
            reread = pending.pop(item.call_id, None)
        if reread is not None:
            reread.tokens += tokens[position]
            reread.cost += costs[position]
    return sorted((file for file in files.values() if file.reads > 1), key=lambda file: (-file.cost, -file.tokens, file.path))
