"""A folder for the files that a process keeps rewriting."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path


@cache
def folder() -> Path:
    """Return the folder of this process, in memory if the system has one."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() and os.access(memory, os.W_OK) else None))
