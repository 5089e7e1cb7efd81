"""What an agent is working on, as its log says: the plan that it wrote last, the last output that failed, the files that it edits. Pure.

The text of a file is put together from what was read of it and the edits that were made since, so it may differ from any one item. What is
shown of it are the edits, the newest first, with `AROUND` lines on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from session.items import FunctionCall, FunctionCallOutput, Item, Message
from session.json_strings import object_of, string_values

from .placeholders import MARK, TAKEN
from .tool_rules import COMMANDS, EDITORS, PATHS, READERS, WRITERS, named_text, tool_name

PLANNERS = frozenset(("todowrite", "todo_write", "update_plan", "write_todos", "updateplan", "plan"))
"""Names of tools that write a plan, in lower case."""
STEP_PLANNERS = frozenset(("taskcreate", "task_create", "add_todo"))
"""Names of tools that add a step to it."""
PATCHERS = frozenset(
    ("edit", "edit_file", "multiedit", "multi_edit", "apply_patch", "patch", "str_replace", "replace", "insert", "replace_in_file")
)
"""Names of tools that change a part of a file."""
SEARCHERS = READERS | {"grep", "glob", "ls", "search", "websearch", "webfetch"}
"""Names of tools whose outputs show texts of others, which say nothing of a failure."""
OLD_TEXTS = ("old_string", "old_str", "oldString", "old_text", "oldText", "search")
NEW_TEXTS = ("new_string", "new_str", "newString", "new_text", "newText", "replace")
WHOLE_TEXTS = ("content", "contents", "file_text", "text")
PATCH = "*** Begin Patch"
"""Begins a patch in the form of Codex, which any tool may be given."""
FILES = 3
"""Number of files, those edited last, that belong to the state."""
ERROR_LINES = 12
"""Most lines of a failing output, the last ones that name an error."""
AROUND = 8
"""Lines shown on each side of an edit."""
MOST_SEARCHED = 2000
"""Characters of arguments from which on only the argument that names the file is taken for a path."""
MOST_LINES = 3000
"""A longer text is not put together: it is hardly a file under edit."""

_FAILURE = re.compile(
    r"Traceback \(most recent|^E  |\bFAILED\b|^\s*\w*(?:Error|Exception)\b: |[Ee]xit(?:ed with)? code:? [1-9]|^error(?:\[|:)|panic: |"
    r"npm ERR|^fatal: |command not found|No such file|--- FAIL|returncode>[1-9]",
    re.MULTILINE,
)
_ERROR = re.compile(
    r"Traceback|\b\w*(?:Error|Exception)\b|FAIL(?:ED)?\b|\bfailed\b|\bfatal\b|panic|not found|No such|Exit code [1-9]|error(?:\[|:)"
)
_SHELL_READ = re.compile(r"(?:^|[;&|\n\"' ])(?:cat|sed -n|head|tail|nl|less|bat)\s")
_SHELL_LOOK = re.compile(r"\b(?:grep|rg|cat|sed -n|head|tail|nl|less|git (?:diff|show|log))\b")
_PATH = re.compile(r"[\w./~-]*[\w-]+\.[A-Za-z]\w{0,8}\b")
_PATCHED = re.compile(r"\*\*\* (?:Update|Add) File: (\S+)")
_NUMBERED = re.compile(r"\s*(\d+)(?:→|\t|\| ?|: ?)")


class Section(NamedTuple):
    """A part of the state.

    Attributes:
        source: The item that it comes from; for a file, the call that edited it last.
        title: What it is, for its heading.
        lines: Its lines, in order.
        groups: Numbers of lines that are shown together or not at all, the most important first. A number is in one group at most.
    """

    source: Item
    title: str
    lines: Sequence[str]
    groups: Sequence[Sequence[int]]


def state_lines(items: Sequence[Item]) -> list[str]:
    """Return the lines of the plan, of the last failure and of the files around their edits."""
    sections = (plan_of_work(items), last_failure(items), *files_under_edit(items))
    return [section.lines[number] for section in sections if section is not None for group in section.groups for number in group]


def plan_of_work(items: Sequence[Item]) -> Section | None:
    """Return the plan that was written last, or its steps if each was added by a call; None without one."""
    steps: list[FunctionCall] = []
    for item in reversed(items):
        if isinstance(item, FunctionCall):
            name = tool_name(item.name)
            if name in PLANNERS or name in STEP_PLANNERS:
                steps.append(item)
            if name in PLANNERS:
                break
    texts = [text for step in reversed(steps) for text in string_values(step.arguments)]
    return _section(steps[0], "plan as last written", _written_lines(texts)) if steps else None


def last_failure(items: Sequence[Item]) -> Section | None:
    """Return the lines of the last failing output that name an error; None without one. What failed and then passed has not failed."""
    calls = {item.call_id: item for item in items if isinstance(item, FunctionCall)}
    passed: set[str | None] = set()
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, FunctionCallOutput):
            call = calls.get(item.call_id)
            command = None if call is None else command_of(call)
            is_failure = call is not None and (item.is_error or (not shows_texts(call) and _fails(item.text)))
            if command is not None and not is_failure and item.extra.get(MARK) not in TAKEN:
                passed.add(command)
            is_failure = is_failure and command not in passed
        else:
            is_failure = not calls and index > 2 and _is_result(items, index) and _fails(_text(item))
        if is_failure and item.extra.get(MARK) not in TAKEN:
            lines = [line for line in _written_lines([_text(item)]) if names_error(line)][-ERROR_LINES:]
            if lines:
                return _section(item, "last failing output", lines)
    return None


def files_under_edit(items: Sequence[Item]) -> list[Section]:
    """Return the files that were edited last, as far as their texts are known, the newest first."""
    files: list[_File] = []
    for item in reversed(items):
        if len(files) == FILES:
            break
        if isinstance(item, FunctionCall) and (path := edited_path(item)) is not None and not any(file.is_at(path) for file in files):
            files.append(_File(path, item))
    calls: dict[str, tuple[_File, FunctionCall]] = {}
    names = [file.path.rpartition("/")[2] for file in files]
    for item in items if files else ():
        if isinstance(item, FunctionCall):
            if not any(name in item.arguments for name in names):
                continue
            paths = paths_in(item)
            named = [file for file in files if any(map(file.is_at, paths))]
            if len(named) == 1:
                calls[item.call_id] = named[0], item
        elif isinstance(item, FunctionCallOutput) and item.call_id in calls and not item.is_error and item.extra.get(MARK) not in TAKEN:
            file, call = calls[item.call_id]
            if edited_path(call) is not None:
                for old, new in edits_of(object_of(call.arguments)):
                    file.edit(old, new)
            elif tool_name(call.name) in READERS | EDITORS or (_SHELL_READ.search(call.arguments) and len(paths_in(call)) == 1):
                file.read(item.text)
    return [section for file in files if (section := file.section()) is not None]


def edited_path(call: FunctionCall) -> str | None:
    """Return the path of the file that a call edits or writes; None if it does neither."""
    if PATCH in call.arguments:
        patched = _PATCHED.search(call.arguments.replace("\\n", "\n"))
        return patched[1] if patched else None
    name = tool_name(call.name)
    if name not in PATCHERS and name not in WRITERS and name not in EDITORS:
        return None
    values = object_of(call.arguments) or {}
    if name in EDITORS and values.get("command") in ("view", "undo_edit"):
        return None
    named = named_text(values, PATHS)
    return None if named is None else named[1]


def read_path(call: FunctionCall) -> str | None:
    """Return the path of the file that a call shows, by a tool or by a command that names one file; None if it shows none."""
    name = tool_name(call.name)
    values = object_of(call.arguments) or {}
    if name in READERS or (name in EDITORS and values.get("command") == "view"):
        named = named_text(values, PATHS)
        return None if named is None else named[1]
    paths = paths_in(call) if _SHELL_READ.search(call.arguments) else ()
    return next(iter(paths)) if len(paths) == 1 else None


def file_in_work(units: Iterable[tuple[Hashable, Iterable[FunctionCall]]]) -> Hashable | None:
    """Return the newest of some units that shows the file which was read or edited last; None if none of them does.

    The units come with their calls, the newest first.
    """
    path = None
    for unit, calls in units:
        for call in calls:
            path = path or edited_path(call) or read_path(call)
            if path is not None and read_path(call) == path:
                return unit
    return None


def paths_in(call: FunctionCall) -> set[str]:
    """Return what may be paths of files in a call's arguments."""
    if len(call.arguments) < MOST_SEARCHED:
        return set(_PATH.findall(call.arguments))
    path = edited_path(call)
    return set() if path is None else {path}


def edits_of(value: Any) -> Iterator[tuple[str | None, str]]:
    """Yield the edits in the arguments of a call: the text that is replaced, and the new one. Without an old text, the file is new."""
    if isinstance(value, str):
        if PATCH in value:
            yield from _edits_of_patch(value)
    elif isinstance(value, list):
        for element in value:
            yield from edits_of(element)
    elif isinstance(value, dict):
        old, new, whole = (
            next((text for key in keys if isinstance(text := value.get(key), str)), None) for keys in (OLD_TEXTS, NEW_TEXTS, WHOLE_TEXTS)
        )
        if new is not None:
            yield old or None, new
        elif whole is not None:
            yield None, whole
        else:
            for element in value.values():
                yield from edits_of(element)


def _edits_of_patch(patch: str) -> Iterator[tuple[str | None, str]]:
    old: list[str] = []
    new: list[str] = []
    for line in (*patch.split("\n"), "***"):
        if line.startswith(("@@", "***")):
            if old or new:
                yield "\n".join(old) or None, "\n".join(new)
            old, new = [], []
        else:
            if line[:1] != "+":
                old.append(line[1:])
            if line[:1] != "-":
                new.append(line[1:])


@dataclass(slots=True)
class _Passage:
    """A text of a file. Each edit has its first line and the line after its last one, the oldest edit first."""

    text: str
    edits: list[tuple[int, int]] = field(default_factory=list)

    def replace(self, old: str, new: str) -> bool:
        """Make an edit, and return True; False if the passage does not have the old text."""
        start = self.text.find(old)
        if start < 0:
            return False
        self.text = self.text[:start] + new + self.text[start + len(old) :]
        first, added = self.text.count("\n", 0, start), new.count("\n")
        shift = added - old.count("\n")
        self.edits = [(begin + shift * (begin > first), end + shift * (end > first + 1)) for begin, end in self.edits]
        self.edits.append((first, first + added + 1))
        return True


@dataclass(slots=True)
class _File:
    """A file under edit: its path, as a call had it, the call that edited it last, and its known passages, the newest last."""

    path: str
    last_edit: FunctionCall
    passages: list[_Passage] = field(default_factory=list)

    def is_at(self, path: str) -> bool:
        """True if the path may be this file's: one of the two may be relative."""
        return path == self.path or path.endswith(f"/{self.path}") or self.path.endswith(f"/{path}")

    def read(self, text: str) -> None:
        """Take the text of an output that shows a part of the file. Passages that it shows again go."""
        lines = text.split("\n")
        if not 1 < len(lines) < MOST_LINES:
            return
        numbered = [match for line in lines if (match := _NUMBERED.match(line))]
        numbers = [int(match[1]) for match in numbered]
        if len(numbers) * 2 > len(lines) and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            lines = [match.string[match.end() :] for match in numbered]  # the others are remarks of the tool
        new = set(lines)
        self.passages = [passage for passage in self.passages if not _is_mostly_in(passage.text.split("\n"), new)]
        self.passages.append(_Passage("\n".join(lines)))

    def edit(self, old: str | None, new: str) -> None:
        """Make an edit in the newest passage that has the old text. If there is none, or no old text, the new text is a passage."""
        if old is not None and any(passage.replace(old, new) for passage in reversed(self.passages)):
            return
        if old is None:
            self.passages.clear()
        self.passages.append(_Passage(new, [(0, new.count("\n") + 1)]))

    def section(self) -> Section | None:
        """Return what is known of the file; None if that is nothing."""
        lines: list[str] = []
        groups: list[list[int]] = []
        rest: list[int] = []
        for passage in reversed(self.passages):
            first, of_passage = len(lines), passage.text.split("\n")
            taken: set[int] = set()
            for begin, end in reversed(passage.edits):
                around = range(max(0, begin - AROUND), min(len(of_passage), end + AROUND))
                groups.append([first + number for number in around if number not in taken])
                taken.update(around)
            rest += [first + number for number in range(len(of_passage)) if number not in taken]
            lines += of_passage
        title = f"{self.path} as last seen"
        return Section(self.last_edit, title, lines, [group for group in (*groups, rest) if group]) if any(groups) else None


def _is_mostly_in(lines: Sequence[str], others: set[str]) -> bool:
    return sum(line in others for line in lines) >= 0.7 * len(lines)


def _section(source: Item, title: str, lines: Sequence[str]) -> Section | None:
    return Section(source, title, lines, [range(len(lines))]) if lines else None


def _written_lines(texts: Iterable[str]) -> list[str]:
    return [line.rstrip() for text in texts for line in text.split("\n") if line.strip()]


def command_of(call: FunctionCall) -> str | None:
    """Return the command that a call runs in a shell; None if it runs none."""
    values = (object_of(call.arguments) or {}) if tool_name(call.name) not in EDITORS else {}
    command = next((values[key] for key in COMMANDS if key in values), None)
    return command if isinstance(command, str) else " ".join(map(str, command)) if isinstance(command, list) else None


def names_error(line: str) -> bool:
    """True if a line of an output names an error or a failure."""
    return _ERROR.search(line) is not None


def _fails(text: str) -> bool:
    """True if the beginning or the end of an output says that something failed."""
    return _FAILURE.search(f"{text[:600]}\n{text[-3000:]}") is not None


def shows_texts(call: FunctionCall) -> bool:
    """True if the call shows a file, a search or a difference, whose text may name errors of others."""
    return tool_name(call.name) in SEARCHERS or _SHELL_LOOK.search(call.arguments[:300]) is not None


def _is_result(items: Sequence[Item], index: int) -> bool:
    """True if a message of the user follows an answer: in a log without calls, the result of a command."""
    item, before = items[index], items[index - 1]
    if not (isinstance(item, Message) and item.role == "user" and isinstance(before, Message) and before.role == "assistant"):
        return False
    return _SHELL_LOOK.search(before.text[-300:]) is None


def _text(item: Item) -> str:
    return item.text if isinstance(item, Message | FunctionCallOutput) else ""
