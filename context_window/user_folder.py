"""`user_folder`: where we keep what can be made again. Imports next to nothing, since the status line needs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

PRICES_FILE = "prices.json"
"""What `kept_prices.py` keeps there of the price lists."""
LIMITS_FILE = "limits.json"
"""What our status line and the gateway keep there of the limits of plans."""


def user_folder(environment: Mapping[str, str] | None = None, home: Path | None = None) -> Path:
    """Return the folder: CONTEXT_WINDOW_HOME in the environment, else ours in the system's folder for caches.

    Raises RuntimeError if the user's home folder is unknown.
    """
    environment = os.environ if environment is None else environment
    if home_folder := environment.get("CONTEXT_WINDOW_HOME"):
        return Path(home_folder).expanduser()
    home = Path.home() if home is None else home
    if sys.platform == "win32":
        folder = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        folder = home / "Library" / "Caches"
    else:  # a relative path is to be ignored: https://specifications.freedesktop.org/basedir-spec/latest/
        cache_home = environment.get("XDG_CACHE_HOME", "")
        folder = Path(cache_home) if Path(cache_home).is_absolute() else home / ".cache"
    return folder / "context-window"


def replace_file(file: Path, content: bytes) -> None:
    """Write a file that only this user may read, in the place of an earlier one. Raises OSError if it cannot be written."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.{os.getpid()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600), "wb") as out:
        out.write(content)
    new.replace(file)
