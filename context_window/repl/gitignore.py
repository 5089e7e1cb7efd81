"""The rules of `.gitignore` files and `.git/info/exclude`, read without git. They save time and tokens, and protect nothing.

A `.git` file is data, and no path in it is followed out of the working directory. So a linked work tree or submodule whose repository
lies elsewhere has its `.gitignore` files applied, but not `info/exclude`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from session.errors import FormatError
from session.files import Folder
from session.printable import printable

if TYPE_CHECKING:
    import re2

MAX_FILE = 256 * 1024
"""Bytes of a file of rules that are read."""
MAX_RULES = 2_000
"""Rules of a file that are applied."""
MAX_RULE = 4_096
"""Characters of a rule. No path is that long, so a longer rule is passed over."""
MAX_TOTAL = 1024 * 1024
"""Bytes of the files of rules that apply together in one folder."""
MEMORY = 1024 * 1024
"""Bytes that RE2 may use for the rules of a file, and as many more as there are rules times `MEMORY_PER_RULE`."""
MEMORY_PER_RULE = 4 * 1024


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
        size: Bytes of the files.
        is_late: True once no more rules may be read.
    """

    is_late: Callable[[], bool]
    levels: tuple[_Level, ...] = ()
    problems: list[str] = field(default_factory=list)
    size: int = 0

    @classmethod
    def above(cls, folder: Path, root: Path, is_late: Callable[[], bool]) -> IgnoreRules:
        """Return the rules from above a folder: up to the top of its repository, or to `root` if it is in none.

        No rules if they leave out the folder itself: a caller that names an ignored folder wants its files.
        """
        top = next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), root)
        rules = cls(is_late)
        git_folder = _git_folder(top, root)
        if git_folder is not None:
            rules = _joined(rules, git_folder / "info" / "exclude", top, root if git_folder.is_relative_to(root) else top)
        for place in reversed((folder, *folder.parents)):
            if not place.is_relative_to(top):
                continue
            if place != top and rules.ignores(str(place), is_folder=True):
                return cls(is_late, problems=rules.problems)
            if place != folder:
                rules = rules.within(place)
        return rules

    def within(self, folder: Path) -> IgnoreRules:
        """Return the rules that apply inside a folder, where these apply to the folder itself."""
        return _joined(self, folder / ".gitignore", folder, folder)

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """True if the rules leave out this file or folder, given that they do not leave out a folder above it."""
        for level in reversed(self.levels):
            name = path[len(level.folder) :].replace(os.sep, "/")
            matching: list[int] | None = level.rules.Match((f"{name}/" if is_folder else name).encode("utf-8", "replace"))
            if matching:
                return level.decisions[max(matching)]  # the last rule that matches decides
        return False


def _joined(rules: IgnoreRules, file: Path, folder: Path, base: Path) -> IgnoreRules:
    """Return the rules with those of a file below `base`, which are relative to a folder and take precedence."""
    if rules.is_late():
        return _without(rules, "the time was over before all rules of .gitignore files were read")
    data = _beginning(file, MAX_FILE + 1, base)
    if data is None:  # usually: there is none
        return rules
    source, place = file.name, f"{printable(folder.name)}/"
    if rules.size + len(data) > MAX_TOTAL:
        return _without(rules, f"{source} of {place} does not apply: with those above it, it has more than {MAX_TOTAL:,} bytes")
    lines = data[:MAX_FILE].decode("utf-8", "replace").split("\n")
    if len(data) > MAX_FILE or len(lines) > MAX_RULES:
        _without(rules, f"only the first {MAX_RULES:,} lines and {MAX_FILE:,} bytes of {source} apply in {place}")
    if any(len(line) > MAX_RULE for line in lines):
        _without(rules, f"rules of more than {MAX_RULE:,} characters in {source} of {place} do not apply")
    level = _compiled(lines[:MAX_RULES], str(folder).rstrip(os.sep) + os.sep, rules.is_late)
    if level is None:
        return _without(rules, f"{source} of {place} does not apply: its rules are too large together, or the time is over")
    return IgnoreRules(rules.is_late, (*rules.levels, level), rules.problems, rules.size + len(data))


def _without(rules: IgnoreRules, problem: str) -> IgnoreRules:
    """Return the rules as they are, with a note on those that were to be added."""
    if problem not in rules.problems:
        rules.problems.append(problem)
    return rules


def _git_folder(top: Path, root: Path) -> Path | None:
    """Return the folder with the repository's `info/exclude`; None if it is not in `top/.git` and lies outside of `root`.

    For a linked work tree and a submodule `.git` is a file that names the folder, and a file `commondir` there names another.
    """
    place = top / ".git"
    for file in (place, None):
        data = _beginning(file or place / "commondir", 4_096, root if place.is_relative_to(root) else top)
        if data is None:  # a folder already, or no linked work tree
            continue
        text = data.decode("utf-8", "replace").strip().removeprefix("gitdir:").strip()
        place = Path(os.path.normpath((top if file else place) / text.partition("\0")[0]))  # by its text alone: nothing is looked up
        if not place.is_relative_to(root):
            return None
    return place


def _beginning(file: Path, most: int, base: Path) -> bytes | None:
    """Return the first bytes of a regular file that is reached from `base` without a link; None if there is none that can be read."""
    try:
        with Folder(base) as folder, folder.open(file) as stream:
            return stream.read(most)
    except (OSError, ValueError, FormatError):
        return None


def _compiled(lines: list[str], folder: str, is_late: Callable[[], bool]) -> _Level | None:
    """Return the rules; None if they do not fit into RE2's memory or the time is over. As in git, lines that are no pattern do nothing."""
    import re2
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    options = re2.Options()
    options.log_errors, options.never_capture, options.dot_nl = False, True, True
    options.max_mem = MEMORY + MEMORY_PER_RULE * len(lines)
    rules, decisions = re2.Set.FullMatchSet(options), []  # Python's `re` takes for ever with a rule of many stars
    for line in lines:
        if is_late():  # pathspec takes up to 20 ms for a rule
            return None
        if len(line) > MAX_RULE:
            continue
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
