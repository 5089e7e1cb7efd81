"""Length of a sound or video file, from its headers. Nothing is decoded, and damaged files are expected."""

from __future__ import annotations

from io import BytesIO
from math import isfinite

READS = 20_000
"""Reads of a file after which it counts as unreadable. Headers need a few hundred; a hostile file could need millions."""
LONGEST = 24 * 60 * 60
"""Seconds above which a length is not believed. No provider takes a longer recording in a request."""
BYTES_PER_SECOND = {"audio": 4_000, "video": 60_000}
"""Of recordings whose headers tell nothing: those of low quality, so that the length is rather too long than too short."""


def kind_of(media_type: str | None) -> str:
    """Return `audio` or `video`; empty for any other type."""
    kind = (media_type or "").lower().partition("/")[0]
    return kind if kind in BYTES_PER_SECOND else ""


def seconds_of(data: bytes, kind: str) -> float:
    """Return the length of `audio` or `video` in seconds: as its headers say, else as long as its bytes would last at a low quality."""
    stated = _stated_seconds(data)
    return len(data) / BYTES_PER_SECOND[kind] if stated is None else stated


def has_length(data: bytes) -> bool:
    """True if the headers of a recording state its length."""
    return _stated_seconds(data) is not None


def _stated_seconds(data: bytes) -> float | None:
    from tinytag import TinyTag, TinyTagException  # 20 ms, and few logs have recordings

    try:
        seconds = TinyTag.get(file_obj=_BoundedFile(data), tags=False).duration
    except (TinyTagException, OSError, ValueError, LookupError, ArithmeticError, RecursionError):
        return None
    return seconds if seconds is not None and isfinite(seconds) and 0 < seconds <= LONGEST else None


class _BoundedFile(BytesIO):
    """A file that fails after too many reads."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._remaining = READS

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes. Raises OSError if there were too many reads."""
        self._remaining -= 1
        if self._remaining < 0:
            raise OSError("too many reads")
        return super().read(size)
