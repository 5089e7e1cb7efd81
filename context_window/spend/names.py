"""Times and folders as people name them: times in a zone, folders by their last part."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

_HASH = re.compile(r"[0-9a-f]{32,64}")


def local_time(time: float | None, zone: tzinfo | None = None) -> datetime | None:
    """Return Unix seconds as the time in a zone, by default the machine's; None if unknown or beyond every calendar."""
    try:
        return None if time is None else datetime.fromtimestamp(time, zone).astimezone(zone)
    except (OverflowError, ValueError, OSError):
        return None


def last_part(path: str) -> str:
    """Return the last part of a path: that of a folder or file. A hash, by which Gemini CLI names folders, is cut to eight letters."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path
    return name[:8] if _HASH.fullmatch(name) else name
