"""Applies the rules of `.gitignore` files and `.git/info/exclude` without git. The rules save time and tokens; they protect nothing.

A `.git` file is untrusted: no path in it is followed out of the working directory. So in a linked work tree or submodule whose
repository is elsewhere, the `.gitignore` files apply, but not `info/exclude`.
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
"""Bytes of a rule file that are read, at most."""
MAX_RULES = 2_000
"""Rules of one file that are applied, at most."""
MAX_RULE = 4_096
"""Characters of the longest rule. No path is that long, so longer rules are ignored."""
MAX_TOTAL = 1024 * 1024
"""Bytes of all rule files that apply in one folder, at most."""
MEMORY = 1024 * 1024
"""Bytes that RE2 may use for the rules of a file, plus `MEMORY_PER_RULE` for each rule."""
MEMORY_PER_RULE = 4 * 1024


@dataclass(frozen=True, slots=True)
class _Level:
    """The rules of one file.

    Attributes:
        folder: The folder that the rules are relative to, with a slash at the end.
        rules: The rules, compiled into one matcher that returns the numbers of all matching rules.
        exclusions: For each rule, True if it excludes a path, False if it includes one again.
    """

    folder: str
    rules: re2.Set
    exclusions: list[bool]


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that apply in a folder: from its own `.gitignore`, those of its parents, and the repository's `info/exclude`.

    Attributes:
        is_late: Returns True once no more rules may be read.
        levels: The rule files, lowest precedence first.
        problems: Sentences about rules that do not apply. All folders of one walk share the list.
        size: Bytes of the rule files.
    """

    is_late: Callable[[], bool]
    levels: tuple[_Level, ...] = ()
    problems: list[str] = field(default_factory=list)
    size: int = 0

    @classmethod
    def above(cls, folder: Path, root: Path, is_late: Callable[[], bool]) -> IgnoreRules:
        """Return the rules of the folders above `folder`, up to the top of its repository, or up to `root` outside of a repository.

        If they exclude the folder itself, return no rules: a caller that names an ignored folder wants to see its files.
        """
        top = next((parent for parent in (folder, *folder.parents) if os.path.lexists(parent / ".git")), root)
        rules = cls(is_late)
        git_folder = _git_folder(top, root)
        if git_folder is not None:
            rules = _joined(rules, git_folder / "info" / "exclude", top, root if git_folder.is_relative_to(root) else top)
        for parent in reversed((folder, *folder.parents)):
            if not parent.is_relative_to(top):
                continue
            if parent != top and rules.ignores(str(parent), is_folder=True):
                return cls(is_late, problems=rules.problems)
            if parent != folder:
                rules = rules.within(parent)
        return rules

    def within(self, folder: Path) -> IgnoreRules:
        """Return the rules that apply inside a folder. `self` must be the rules that apply to the folder itself."""
        return _joined(self, folder / ".gitignore", folder, folder)

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """True if the rules exclude this file or folder. No folder above it may be excluded."""
        for level in reversed(self.levels):
            name = path[len(level.folder) :].replace(os.sep, "/")
            matching: list[int] | None = level.rules.Match((f"{name}/" if is_folder else name).encode("utf-8", "replace"))
            if matching:
                return level.exclusions[max(matching)]  # the last rule that matches decides
        return False


def _joined(rules: IgnoreRules, file: Path, folder: Path, base: Path) -> IgnoreRules:
    """Return `rules` extended by those in `file`, which are relative to `folder` and take precedence. `file` is below `base`."""
    if rules.is_late():
        return _with_problem(rules, "the time was over before all rules of .gitignore files were read")
    data = _beginning(file, MAX_FILE + 1, base)
    if data is None:  # usually because the file does not exist
        return rules
    source, location = file.name, f"{printable(folder.name)}/"
    if rules.size + len(data) > MAX_TOTAL:
        return _with_problem(rules, f"{source} of {location} does not apply: with those above it, it has more than {MAX_TOTAL:,} bytes")
    lines = data[:MAX_FILE].decode("utf-8", "replace").split("\n")
    if len(data) > MAX_FILE or len(lines) > MAX_RULES:
        _with_problem(rules, f"only the first {MAX_RULES:,} lines and {MAX_FILE:,} bytes of {source} apply in {location}")
    if any(len(line) > MAX_RULE for line in lines):
        _with_problem(rules, f"rules of more than {MAX_RULE:,} characters in {source} of {location} do not apply")
    level = _compiled(lines[:MAX_RULES], str(folder).rstrip(os.sep) + os.sep, rules.is_late)
    if level is None:
        return _with_problem(rules, f"{source} of {location} does not apply: its rules are too large together, or the time is over")
    return IgnoreRules(rules.is_late, (*rules.levels, level), rules.problems, rules.size + len(data))


def _with_problem(rules: IgnoreRules, problem: str) -> IgnoreRules:
    """Return the rules unchanged, with a note about the rules that could not be added."""
    if problem not in rules.problems:
        rules.problems.append(problem)
    return rules


def _git_folder(top: Path, root: Path) -> Path | None:
    """Return the folder that holds the repository's `info/exclude`; None if it is neither `top/.git` nor inside `root`.

    In a linked work tree or a submodule, `.git` is a file that names a folder. A file `commondir` in that folder may name another one.
    """
    git_path = top / ".git"
    for file in (git_path, None):
        data = _beginning(file or git_path / "commondir", 4_096, root if git_path.is_relative_to(root) else top)
        if data is None:  # `.git` is a folder, or there is no `commondir`
            continue
        text = data.decode("utf-8", "replace").strip().removeprefix("gitdir:").strip()
        git_path = Path(os.path.normpath((top if file else git_path) / text.partition("\0")[0]))  # text only: touches no file
        if not git_path.is_relative_to(root):
            return None
    return git_path


def _beginning(file: Path, size: int, base: Path) -> bytes | None:
    """Return the first bytes of a regular file; None if it cannot be read, or only through a link below `base`."""
    try:
        with Folder(base) as folder, folder.open(file) as stream:
            return stream.read(size)
    except (OSError, ValueError, FormatError):
        return None


def _compiled(lines: list[str], folder: str, is_late: Callable[[], bool]) -> _Level | None:
    """Return the compiled rules; None if they exceed RE2's memory or the time is over. As in git, invalid patterns are ignored."""
    import re2
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    options = re2.Options()
    options.log_errors, options.never_capture, options.dot_nl = False, True, True
    options.max_mem = MEMORY + MEMORY_PER_RULE * len(lines)
    rules, exclusions = re2.Set.FullMatchSet(options), []  # Python's `re` takes exponential time on a rule with many stars
    for line in lines:
        if is_late():  # pathspec can take 20 ms for one rule
            return None
        if len(line) > MAX_RULE:
            continue
        try:
            pattern = GitIgnoreSpecPattern(line.removesuffix("\r"))
            if pattern.regex is not None and pattern.include is not None:
                rules.Add(_for_entry_only(str(pattern.regex.pattern)))
                exclusions.append(pattern.include)
        except (ValueError, re.error, re2.error, Warning, RecursionError, OverflowError):
            continue
    try:
        rules.Compile()
    except re2.error:
        return None
    return _Level(folder, rules, exclusions)


def _for_entry_only(pattern: str) -> str:
    """Narrow pathspec's regular expression of a rule to the named entry. The original also matches everything below a named folder.

    A walk does not enter an excluded folder. If `!name` also matched everything below `name`, it would include again what other rules
    exclude there.
    """
    pattern = pattern if pattern.startswith("^") else f".*{pattern}"
    if "(?P<ps_d>" in pattern:  # pathspec marks the end of a folder's name with this group
        return pattern
    return f"{pattern}.+" if pattern.endswith("/") else f"{pattern}.*"
