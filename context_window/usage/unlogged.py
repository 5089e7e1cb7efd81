"""Estimates the tokens that a tool sends with every request and does not log: its system prompt and its tools.

The table is `context_window/data/unlogged_tokens.json`. Each row is the median, over recorded sessions of one tool, of what the first
reported request had more than the local count of its log. Only the two thirds of the recorded sessions that constants may be fitted on
were used. `benchmarks/session_accuracy.py` compares the estimates with the others.

Each row rests on few people's sessions, and others have other tools and instructions: in their logs the estimates were off by 22 to 35 %.
So an estimate is two thirds to three halves of its row. Copilot CLI states the tokens of its tools when a session ends, and
Claude Code's `/context` those of everything but the messages: they are facts.
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
    """Tokens of a tool's requests that its log does not hold: the median over so many sessions of so many people.

    The tool has the name of its log format. `since` is the first version that this holds for, empty for all; `sessions` is 0 if the log
    states it.
    """

    tool: str
    is_subagent: bool
    since: str
    tokens: int
    sessions: int
    people: int

    @property
    def least(self) -> int:
        """Tokens that it is at least, in most people's logs."""
        return self.tokens * 2 // 3 if self.sessions else self.tokens

    @property
    def most(self) -> int:
        """Tokens that it is at most, in most people's logs."""
        return self.tokens * 3 // 2 if self.sessions else self.tokens


@cache
def _table() -> tuple[UnloggedTokens, ...]:
    text = (files("context_window") / "data" / "unlogged_tokens.json").read_text(encoding="utf-8")
    return tuple(UnloggedTokens(**row) for row in json.loads(text))


def unlogged_tokens(metadata: Mapping[str, Any]) -> UnloggedTokens | None:
    """Return what the log with this metadata states, or the estimate from the latest row for its tool and version. None without either."""
    source = metadata.get("source")
    tool = source.get("format") if isinstance(source, dict) else None
    stated = metadata.get("tool_tokens", metadata.get("fixed_tokens"))
    if type(stated) is int and stated > 0 and isinstance(tool, str):
        return UnloggedTokens(tool, False, "", stated, 0, 0)
    version, is_subagent = _numbers(metadata.get("version")), metadata.get("sidechain") is True
    rows = [row for row in _table() if row.tool == tool and row.is_subagent == is_subagent and _numbers(row.since) <= version]
    return max(rows, key=lambda row: _numbers(row.since), default=None)


def _numbers(version: object) -> tuple[int, ...]:
    """Return the numbers in a version; none for anything but a text."""
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version)) if isinstance(version, str) else ()
