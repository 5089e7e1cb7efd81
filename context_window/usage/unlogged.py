"""Estimates the tokens that a tool sends with every request and does not log: its system prompt and its tools.

The table is `context_window/data/unlogged_tokens.json`. Each row is the median, over recorded sessions of one tool, of what the first
reported request had more than the local count of its log. Only the two thirds of the recorded sessions that constants may be fitted on
were used. `benchmarks/session_accuracy.py` compares the estimates with the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class UnloggedTokens:
    """Tokens of a tool's requests that its log does not hold.

    Attributes:
        tool: The tool, by the name of its log format.
        is_subagent: True for sessions of the tool's sub-agents.
        since: The first version that this holds for; empty for all.
        tokens: The median over the sessions, in tokens.
        sessions: Number of sessions from which it was learned.
    """

    tool: str
    is_subagent: bool
    since: str
    tokens: int
    sessions: int


@cache
def _table() -> tuple[UnloggedTokens, ...]:
    text = (files("context_window") / "data" / "unlogged_tokens.json").read_text(encoding="utf-8")
    return tuple(UnloggedTokens(**row) for row in json.loads(text))


def unlogged_tokens(metadata: Mapping[str, Any]) -> UnloggedTokens | None:
    """Return the estimate for a log with this metadata, from the latest row for its tool and version. None if there is none.

    Args:
        metadata: The session's, as a reader of transcripts made it: `source`, `sidechain` and `version` count.
    """
    source = metadata.get("source")
    tool = source.get("format") if isinstance(source, dict) else None
    version, is_subagent = _numbers(metadata.get("version")), metadata.get("sidechain") is True
    rows = [row for row in _table() if row.tool == tool and row.is_subagent == is_subagent and _numbers(row.since) <= version]
    return max(rows, key=lambda row: _numbers(row.since), default=None)


def _numbers(version: object) -> tuple[int, ...]:
    """Return the numbers in a version; none for anything but a text."""
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version)) if isinstance(version, str) else ()
