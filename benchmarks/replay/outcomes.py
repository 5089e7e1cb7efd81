"""What decides if an agent can go on, at each request: what it should still see, and what it pays for what it does not see.

- *at hand*: requests in which the view shows everything that the response uses again;
- *error*: the part of the last failing output's lines about errors that the view shows, once the output is `GAP` items old;
- *plan*: the same of the lines of the plan that was written last;
- *files*: of the known text of each file edited in the last `RECENT` items: what was read of it, with the edits made since;
- *asked*: the messages of the user that are whole, and *constraint*: the lines of these with words such as must, never and only;
- *edit lines*: of the old lines that an edit quotes.

The *whole bill* is the cost with time, a pause beyond the cache's lifetime writes everything anew, and with recovery: each blind edit, and
each path that a call names and the view lacks, is one request more, which reads the view and brings back the lines.

Nothing here asks the library what it thinks a plan, a failure or a file is: the definitions are this file's own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from session.items import FunctionCall, FunctionCallOutput, Message

from .metric import GAP, READ_PRICE, WRITE_PRICE, Bill, Shown, Step, Term, Timeline, quoted_lines
from .terms import lines_of, parsed

RECENT = 40
"""Items after its last edit in which a file is under edit."""
ERRORS = 12
"""Most lines of a failing output that count, the last ones."""
LIFETIME = 300
"""Seconds for which the provider's cache holds a prefix."""
OUTPUT_PRICE = 5
"""The price of a token that the model writes, in parts of the plain price."""
CALL, PATH_ANSWER = 80, 200
"""Tokens of a call that reads something again, and of the answer that finds a path."""
PARTS = ("at hand", "error", "plan", "files", "asked", "constraint", "edit lines")
"""The measures that are parts, in the order of the tables."""

_PLAN_TOOLS = re.compile(r"todo_?write|update_?plan|write_todos|^plan$|task_?(?:create|update)")
_READ_TOOLS = {"read", "view", "cat", "open_file", "read_file", "str_replace_editor"}
_EDIT_TOOLS = {
    "edit",
    "write",
    "multiedit",
    "apply_patch",
    "str_replace_editor",
    "create",
    "str_replace",
    "write_file",
    "replace",
    "notebookedit",
}
_WRITE_TOOLS = {"write", "create", "write_file"}
_NEW_TEXT = {"new_string", "new_str", "newText", "new_text", "newString", "content", "contents", "file_text"}
_SHELL_READ = re.compile(r"(?:^|[;&|\n\"' ])(?:cat|sed -n|head|tail|nl|less|bat)\s")
_SHELL_LOOK = re.compile(r"\b(?:grep|rg|cat|sed -n|head|tail|nl|less|git (?:diff|show|log))\b")
_LOOK_TOOLS = _READ_TOOLS | {"grep", "glob", "ls", "websearch", "webfetch"}
_FAILED = re.compile(
    r"Traceback \(most recent|^E  |\bFAILED\b|^\s*\w*(?:Error|Exception)\b: |[Ee]xit(?:ed with)? code:? [1-9]|^error(?:\[|:)|panic: |"
    r"npm ERR|^fatal: |command not found|No such file|--- FAIL|returncode>[1-9]",
    re.MULTILINE,
)
_ERROR = re.compile(
    r"Traceback|\b\w*(?:Error|Exception)\b|FAIL(?:ED)?\b|\bfailed\b|\bfatal\b|panic|not found|No such|Exit code [1-9]|error(?:\[|:)"
)
_RULE = re.compile(
    r"\b(?:must|never|don'?t|do not|always|only|should|make sure|ensure|instead|avoid|without|prefer|important|needs? to|no longer)\b",
    re.IGNORECASE,
)
_TAGGED = re.compile(
    r"<(system-reminder|command-\w+|local-command-\w+|environment_context|user_instructions|INSTRUCTIONS|permissions)[^>]*>.*?</\1>",
    re.DOTALL,
)
_STATES = {"pending", "in_progress", "completed"}
_PATCH = "*** Begin Patch"


class Lines(NamedTuple):
    """Lines that a view should show from a position of the log on."""

    place: int
    lines: tuple[str, ...]


class FileChange(NamedTuple):
    """A call about a file.

    Attributes:
        place: Position in the log.
        name: The file's name without folders.
        is_edit: True if it changed the file.
        removed: Lines that are no longer in it.
        added: Lines that are.
        is_whole: True if `added` is all of it.
    """

    place: int
    name: str
    is_edit: bool
    removed: frozenset[str]
    added: frozenset[str]
    is_whole: bool


class Needs:
    """What the requests of a session should still show, found in its log once."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        items = timeline.recording.items
        self._calls = {item.call_id: place for place, item in enumerate(items) if isinstance(item, FunctionCall)}
        self.asked = list(self._asked())
        self.plans = list(self._plans())
        self.failures = list(self._failures())
        self.changes = sorted(self._changes(), key=lambda change: change.place)

    def _asked(self) -> Iterator[Lines]:
        for place, item in enumerate(self._timeline.recording.items):
            if not isinstance(item, Message) or item.role != "user" or item.is_summary or self._is_result(place):
                continue
            text = _TAGGED.sub("", self._timeline.texts[place]).strip()
            is_from_tool = text.startswith(("Caveat:", "[Request interrupted")) or (self._calls and text.startswith("<"))
            if text and not is_from_tool and (lines := tuple(dict.fromkeys(lines_of(text)))):
                yield Lines(place, lines)

    def _is_result(self, place: int) -> bool:
        """True if a message of the user's is the result of a command: in a log without calls, all after the task."""
        return not self._calls and place > 2

    def _plans(self) -> Iterator[Lines]:
        for place, item in enumerate(self._timeline.recording.items):
            if isinstance(item, FunctionCall) and _PLAN_TOOLS.search(_name(item)):
                lines = dict.fromkeys(lines_of("\n".join(self._timeline.texts[place].split("\n")[1:])))
                if kept := tuple(line for line in lines if line not in _STATES and len(line) > 11):
                    yield Lines(place, kept)

    def _failures(self) -> Iterator[Lines]:
        for place, item in enumerate(self._timeline.recording.items):
            text = self._timeline.texts[place]
            if isinstance(item, FunctionCallOutput):
                has_failed = item.is_error or (not self._looks(self._call_of(item)) and _has_failed(text))
            else:
                has_failed = isinstance(item, Message) and item.role == "user" and self._is_result(place) and _has_failed(text)
                has_failed = has_failed and not _SHELL_LOOK.search(self._timeline.texts[place - 1][-300:])
            if has_failed and (lines := tuple(dict.fromkeys(line for line in lines_of(text) if _ERROR.search(line)))[-ERRORS:]):
                yield Lines(place, lines)

    def _call_of(self, output: FunctionCallOutput) -> FunctionCall | None:
        place = self._calls.get(output.call_id)
        item = None if place is None else self._timeline.recording.items[place]
        return item if isinstance(item, FunctionCall) else None

    @staticmethod
    def _looks(call: FunctionCall | None) -> bool:
        return call is not None and (_name(call) in _LOOK_TOOLS or _SHELL_LOOK.search(call.arguments[:300]) is not None)

    def _changes(self) -> Iterator[FileChange]:
        for place, item in enumerate(self._timeline.recording.items):
            text = self._timeline.texts[place]
            if isinstance(item, FunctionCall) and (_name(item) in _EDIT_TOOLS or _PATCH in text):
                paths = [path] if (path := _path(item)) else re.findall(r"\*\*\* (?:Update|Add) File: (\S+)", text)[:1]
                old, new = frozenset(quoted_lines(item)), frozenset(_new_lines(item, text))
                is_whole = _name(item) in _WRITE_TOOLS
                for name in map(_base, paths):
                    yield FileChange(place, name, True, old, new if is_whole else new - old, is_whole)
            elif isinstance(item, FunctionCallOutput) and (call := self._call_of(item)) is not None:
                call_place = self._calls[item.call_id]
                path = _path(call) if _name(call) in _READ_TOOLS else None
                if path is None and _SHELL_READ.search(self._timeline.texts[call_place]):
                    paths = sorted(self._timeline.terms[call_place].paths)
                    path = paths[0] if len(paths) == 1 else None
                if path is not None:
                    yield FileChange(place, _base(path), False, frozenset(), frozenset(lines_of(text)), False)


def _name(call: FunctionCall) -> str:
    return call.name.lower().rsplit("__", 1)[-1]


def _path(call: FunctionCall) -> str | None:
    arguments = parsed(call.arguments)
    values = [arguments.get(key) for key in ("file_path", "path", "filePath")] if isinstance(arguments, dict) else []
    return next((value for value in values if isinstance(value, str)), None)


def _base(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1]


def _has_failed(text: str) -> bool:
    return _FAILED.search(f"{text[:600]}\n{text[-3000:]}") is not None


def _new_lines(call: FunctionCall, text: str) -> Iterable[str]:
    """Return the lines that a call puts into a file; `text` is that of the call."""
    if _PATCH in text:
        return (line for added in text.splitlines() if added[:1] in "+ " for line in lines_of(added[1:]))
    return (line for new in _values(parsed(call.arguments)) for line in lines_of(new))


def _values(arguments: Any) -> Iterator[str]:
    """Yield the new texts in the arguments of an edit, at any depth."""
    if isinstance(arguments, dict):
        for key, value in arguments.items():
            if isinstance(value, str):
                yield from [value] if key in _NEW_TEXT else []
            else:
                yield from _values(value)
    elif isinstance(arguments, list):
        for element in arguments:
            yield from _values(element)


@dataclass(slots=True)
class Outcomes:
    """What the views of one session showed of what the agent needed. Sums over the requests.

    Attributes:
        sums: By measure, the sum of the parts.
        counts: By measure, the number of requests that it was taken at.
        bill: The cost with time, in tokens at the plain price.
        plain_bill: The same of sending the whole log with every request.
        recovery: The cost of the requests that bring back what was lost.
    """

    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    bill: float = 0.0
    plain_bill: float = 0.0
    recovery: float = 0.0

    @property
    def whole_bill(self) -> float:
        """The whole bill, in parts of the cost with time of sending the whole log."""
        return (self.bill + self.recovery) / (self.plain_bill or 1.0)

    def part(self, measure: str) -> float | None:
        """Return the mean of a measure; None if it was never taken."""
        return self.sums[measure] / self.counts[measure] if self.counts[measure] else None

    def add(self, measure: str, shown: Iterable[float]) -> None:
        """Add a request: of each thing that should be shown, the part that is. Nothing if nothing should."""
        values = list(shown)
        if values:
            self.sums[measure] += sum(values) / len(values)
            self.counts[measure] += 1


class OutcomeReading:
    """Reads the outcomes of the views that a policy gives of one session.

    Attributes:
        outcomes: The sums so far.
    """

    def __init__(self, timeline: Timeline, needs: Needs) -> None:
        self.outcomes = Outcomes()
        self._timeline, self._needs = timeline, needs
        self._bill, self._plain = Bill(), Bill()
        self._last_time = 0.0
        self._files: dict[str, set[str]] = {}
        self._edited: dict[str, int] = {}
        self._read = 0  # number of changes of files that were taken

    def read(self, step: Step, shown: Sequence[Shown], is_line_shown: Callable[[str], bool], lost: Sequence[Term], paths_lost: int) -> None:
        """Add the view that was sent with the request of a step.

        Args:
            step: The step.
            shown: The view's items.
            is_line_shown: True for a line that the view shows.
            lost: The terms that the response uses and the view lacks.
            paths_lost: Number of calls that name a path which the view lacks.
        """
        outcomes, needs, start = self.outcomes, self._needs, step.start
        outcomes.add("at hand", [not lost])
        asked = [lines for place, lines in needs.asked if place < start]
        outcomes.add("asked", (all(map(is_line_shown, lines)) for lines in asked))
        outcomes.add("constraint", (is_line_shown(line) for lines in asked for line in lines if _RULE.search(line)))
        for measure, needed in (("plan", needs.plans), ("error", needs.failures)):
            last = next((lines for lines in reversed(needed) if lines.place < start), None)
            if last is not None and start - last.place >= GAP:
                outcomes.add(measure, map(is_line_shown, last.lines))
        outcomes.add("files", (sum(map(is_line_shown, lines)) / len(lines) for lines in self._files_under_edit(start)))
        for lines in step.quotes:
            outcomes.add("edit lines", map(is_line_shown, lines))
        self._pay(step, shown, is_line_shown, paths_lost)

    def _files_under_edit(self, start: int) -> list[set[str]]:
        """Return the known text of each file under edit, as its lines."""
        changes = self._needs.changes
        while self._read < len(changes) and changes[self._read].place < start:
            place, name, is_edit, removed, added, is_whole = changes[self._read]
            self._read += 1
            self._files[name] = set(added) if is_whole else (self._files.get(name, set()) - removed) | added
            if is_edit:
                self._edited[name] = place
        return [self._files[name] for name, place in self._edited.items() if start - place <= RECENT and self._files[name]]

    def _pay(self, step: Step, shown: Sequence[Shown], is_line_shown: Callable[[str], bool], paths_lost: int) -> None:
        time = self._timeline.recording.items[step.start].created_at
        if time and self._last_time and time - self._last_time > LIFETIME:
            self._bill.forget()
            self._plain.forget()
        self._last_time = time or self._last_time
        self._bill.add([(item.key, item.tokens) for item in shown])
        self._plain.add([(place, self._timeline.tokens[place]) for place in range(step.start)])
        total = sum(item.tokens for item in shown)
        answers = [PATH_ANSWER] * paths_lost
        for lines in step.quotes:
            if not all(map(is_line_shown, lines)):
                holders = (max(place for place in self._timeline.line_places[line] if place < step.start) for line in lines)
                answers.append(max(self._timeline.tokens[place] for place in holders))
        outcomes = self.outcomes
        outcomes.recovery += sum(READ_PRICE * total + WRITE_PRICE * (answer + CALL) + OUTPUT_PRICE * CALL for answer in answers)
        outcomes.bill, outcomes.plain_bill = self._bill.total, self._plain.total
