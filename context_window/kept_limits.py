"""`keep_limits`: the limits of plans as our status line and the gateway were told of them, in a small file that `context-window` reads.

Imports next to nothing, since the status line needs it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from session.opening import open_regular

from .user_folder import LIMITS_FILE, replace_file, user_folder

LARGEST = 1_000_000
"""Bytes of the file that are read."""
FRESH = 60
"""Seconds in which the same limits are not written again."""
CLOCK = 3_600
"""Seconds by which limits may be newer than those to be kept. Newer still are those of a clock that was wrong."""


def keep_limits(tool: str, stated: object, time: float) -> None:
    """Keep the `rate_limits` that a tool stated at `time` in Unix seconds. A fault costs only that.

    Those in the file stay if they are newer, or the same and from the last minute.
    """
    try:
        file = user_folder() / LIMITS_FILE
        kept = kept_limits(file)
        earlier = kept.get(tool, {})
        age = time - earlier.get("time", 0)
        if -CLOCK < age < 0 or (0 <= age < FRESH and earlier.get("rate_limits") == stated):
            return
        replace_file(file, json.dumps(kept | {tool: {"time": time, "rate_limits": stated}}).encode())
    except (OSError, OverflowError, RuntimeError, ValueError, RecursionError):
        return


def kept_limits(file: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return what was kept, by default where `keep_limits` writes: by tool `time`, in Unix seconds, and `rate_limits`.

    Nothing if the file cannot be read.
    """
    try:
        with open_regular(user_folder() / LIMITS_FILE if file is None else file) as opened:
            content = json.loads(opened.read(LARGEST))
    except (OSError, RuntimeError, ValueError, RecursionError):
        return {}
    tools = content.items() if isinstance(content, dict) else ()
    return {tool: value for tool, value in tools if isinstance(value, dict) and isinstance(value.get("time"), int | float)}
