"""Logs of Claude Code for the tests of this room."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def answer(message: str, output: int, **changes: Any) -> dict[str, Any]:
    """A line of Claude Code with the usage of an answer."""
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
        "output_tokens": output,
    }
    return {
        "type": "assistant",
        "timestamp": "2026-03-25T12:00:00Z",
        "sessionId": "s1",
        "cwd": "/home/me/shop",
        "requestId": f"req_{message}",
        "message": {"id": message, "role": "assistant", "model": "claude-opus-4-6", "content": [], "usage": usage},
    } | changes


def write(path: Path, *values: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{value if isinstance(value, str) else json.dumps(value)}\n" for value in values))
    return path


def write_folder(folder: Path, logs: int) -> list[Path]:
    """Logs that repeat requests of each other, some with reports of fewer tokens, some damaged, some of no known format."""
    paths = []
    for index in range(logs):
        own = [answer(f"m{index}-{number}", number + 1, sessionId=f"s{index}") for number in range(3)]
        fork = [answer(f"m{index // 2}-{number}", number + index % 3, sessionId=f"s{index}") for number in range(3)]
        damage = ["{]"] if index % 5 == 0 else []
        foreign = [{"x": index}] if index % 7 == 6 else [*own, *damage, *fork]
        paths.append(write(folder / f"{index:03}.jsonl", *foreign))
    return paths
