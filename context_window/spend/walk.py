"""`matches`, `below` and `walked`: the paths of logs. No link is followed below the folder that a tool or the user names.

So no walk is endless, and none leaves the folder. It does not leave the folder's disk either, and stops at `MOST_ENTRIES`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from fnmatch import translate
from glob import has_magic
from itertools import takewhile
from pathlib import Path

MOST_ENTRIES = 2_000_000
"""Files and folders that one walk looks at."""
ANY_FOLDERS = "**"


def matches(pattern: str) -> Iterator[Path]:
    """Yield the files and folders that a pattern means.

    Args:
        pattern: A path. Its parts may have `*`, `?` and `[…]`; the part `**` stands for any number of folders.
    """
    parts = Path(pattern).parts
    plain = list(takewhile(lambda part: not has_magic(part), parts))
    yield from below(Path(*plain) if plain else Path(), parts[len(plain) :])


def below(folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """Yield what parts of a pattern mean below a folder, whose own name is no pattern, and the folders there that this user may not list.

    Args:
        folder: The folder. It may be a link.
        parts: The parts.
    """
    if not parts:
        if folder.exists():
            yield folder
        return
    expressions = [None if part == ANY_FOLDERS else re.compile(translate(part)) for part in parts]
    for path, names in walked(folder, lambda names: _may_lead_on(names, expressions)):
        if names is None or _fits(names, expressions):
            yield path


def walked(folder: Path, leads_on: Callable[[list[str]], bool], *, has_links: bool = False) -> Iterator[tuple[Path, list[str] | None]]:
    """Yield the entries below a folder with the names on the way to them, in the order of their names.

    A folder that this user may not list is yielded once more, with None: what it holds is not known.

    Args:
        folder: The folder. It may be a link.
        leads_on: Tells of the names on the way to a folder whether to look into it.
        has_links: True for links to files, too.
    """
    try:
        device = os.stat(folder).st_dev
    except (OSError, ValueError):
        return
    open_folders: list[tuple[Path, list[str]]] = [(folder, [])]
    seen = 0
    while open_folders:
        path, names = open_folders.pop()
        try:
            with os.scandir(path) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except PermissionError:
            yield path, None
            continue
        except OSError:  # gone meanwhile
            continue
        deeper: list[tuple[Path, list[str]]] = []
        for entry in found:
            seen += 1
            if seen > MOST_ENTRIES:
                return
            if entry.is_symlink() and not (has_links and entry.is_file()):
                continue
            way = [*names, entry.name]
            yield path / entry.name, way
            if entry.is_dir(follow_symlinks=False) and leads_on(way) and _is_on(entry, device):
                deeper.append((path / entry.name, way))
        open_folders += reversed(deeper)


def _is_on(entry: os.DirEntry[str], device: int) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_dev in (device, 0)  # Windows does not say
    except OSError:
        return False


def _fits(names: list[str], parts: list[re.Pattern[str] | None]) -> bool:
    """True if names on a way are those of a pattern."""
    if not parts:
        return not names
    first, *rest = parts
    if first is None:
        return any(_fits(names[skipped:], rest) for skipped in range(len(names) + 1))
    return bool(names) and first.match(names[0]) is not None and _fits(names[1:], rest)


def _may_lead_on(names: list[str], parts: list[re.Pattern[str] | None]) -> bool:
    """True if something below a folder can fit a pattern."""
    for name, part in zip(names, parts, strict=False):
        if part is None:
            return True
        if part.match(name) is None:
            return False
    return len(names) < len(parts)
