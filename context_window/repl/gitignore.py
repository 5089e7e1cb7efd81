"""The rules of `.gitignore` files and `.git/info/exclude`, read without git. They save time and tokens, and protect nothing."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from session.errors import FormatError
from session.files import Folder

if TYPE_CHECKING:
    import re2

MAX_FILE = 256 * 1024
"""Bytes of a file of rules that are read."""
MAX_RULES = 2_000
"""Rules of a file that are applied."""


@dataclass(frozen=True, slots=True)
class _Level:
    """The rules of one file.

    Attributes:
        folder: The folder they are relative to, with a slash at the end.
        rules: The rules, as one machine that finds all that match a path.
        decisions: By the number of a rule: True if it leaves a path out, False if it brings one back.
    """

    folder: str
    rules: re2.Set
    decisions: list[bool]


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that apply in a folder: its own file of them, those of the folders above it, and the repository's `info/exclude`.

    Attributes:
        levels: Files of rules, the one with the least precedence first.
        problems: Sentences on rules that do not apply, shared by all folders of one walk.
    """

    levels: tuple[_Level, ...] = ()
    problems: list[str] = field(default_factory=list)

    @classmethod
    def above(cls, folder: Path, root: Path) -> IgnoreRules:
        """Return the rules from above a folder: up to the top of its repository, or to `root` if it is in none.

        No rules if they leave out the folder itself: a caller that names an ignored folder wants its files.
        """
        top = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), root)
        rules = _joined(cls(), _git_folder(top) / "info" / "exclude", top)
        for place in reversed((folder, *folder.parents)):
            if not place.is_relative_to(top):
                continue
            if place != top and rules.ignores(str(place), is_folder=True):
                return cls()
            if place != folder:
                rules = rules.within(place)
        return rules

    def within(self, folder: Path) -> IgnoreRules:
        """Return the rules that apply inside a folder, where these apply to the folder itself."""
        return _joined(self, folder / ".gitignore", folder)

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """True if the rules leave out this file or folder, given that they do not leave out a folder above it."""
        for level in reversed(self.levels):
            name = path[len(level.folder) :].replace(os.sep, "/")
            matching: list[int] | None = level.rules.Match((f"{name}/" if is_folder else name).encode("utf-8", "replace"))
            if matching:
                return level.decisions[max(matching)]  # the last rule that matches decides
        return False


def _joined(rules: IgnoreRules, file: Path, folder: Path) -> IgnoreRules:
    """Return the rules with those of a file, which are relative to a folder and take precedence."""
    data = _beginning(file, MAX_FILE + 1)
    if data is None:  # usually: there is none
        return rules
    lines = data[:MAX_FILE].decode("utf-8", "replace").split("\n")
    if len(data) > MAX_FILE or len(lines) > MAX_RULES:
        rules.problems.append(f"only the first {MAX_RULES:,} lines and {MAX_FILE:,} bytes of {file.name} apply in {folder.name}/")
    level = _compiled(lines[:MAX_RULES], str(folder).rstrip(os.sep) + os.sep)
    if level is None:
        rules.problems.append(f"{file.name} of {folder.name}/ does not apply: its rules are too large together")
        return rules
    return IgnoreRules((*rules.levels, level), rules.problems)


def _git_folder(top: Path) -> Path:
    """Return the folder with the repository's `info/exclude`: for a linked work tree and a submodule, `.git` is a file that names it."""
    place = top / ".git"
    for name in (".git", "commondir"):
        data = _beginning(place if name == ".git" else place / name, 4_096)
        if data is None:  # a folder already, or no linked work tree
            continue
        text = data.decode("utf-8", "replace").strip().removeprefix("gitdir:").strip()
        if "\0" not in text:
            place = (top if name == ".git" else place) / text
    return place


def _beginning(file: Path, most: int) -> bytes | None:
    """Return the first bytes of a regular file; None if there is none that can be read."""
    try:
        with Folder(file.parent) as folder, folder.open(file) as stream:
            return stream.read(most)
    except (OSError, FormatError):
        return None


def _compiled(lines: list[str], folder: str) -> _Level | None:
    """Return the rules; None if they do not fit into RE2's memory. As git does, lines that are no pattern are passed over."""
    import re2
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    options = re2.Options()
    options.log_errors, options.never_capture, options.dot_nl = False, True, True
    rules, decisions = re2.Set.FullMatchSet(options), []  # Python's `re` takes for ever with a rule of many stars
    for line in lines:
        try:
            pattern = GitIgnoreSpecPattern(line.removesuffix("\r"))
            if pattern.regex is not None and pattern.include is not None:
                rules.Add(_of_one_entry(str(pattern.regex.pattern)))
                decisions.append(pattern.include)
        except (ValueError, re.error, re2.error, Warning, RecursionError, OverflowError):
            continue
    try:
        rules.Compile()
    except re2.error:
        return None
    return _Level(folder, rules, decisions)


def _of_one_entry(pattern: str) -> str:
    """Return pathspec's regular expression of a rule, which also matches all below a folder that the rule names, for the folder alone.

    A walk does not enter a folder that is left out. Were `!name` to match all below `name`, it would bring back what other rules name.
    """
    pattern = pattern if pattern.startswith("^") else f".*{pattern}"
    if "(?P<ps_d>" in pattern:  # pathspec's mark of where a folder's name ends
        return pattern
    return f"{pattern}.+" if pattern.endswith("/") else f"{pattern}.*"
