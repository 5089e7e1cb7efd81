"""aider's chat history, in Markdown: `#### ` lines are the user's, `> ` lines the tool's own, the others the model's.

Every line that aider itself marks ends in two spaces; so headings and quotations that the model wrote are told from them.
"""

from __future__ import annotations

import re

from session.items import Message

from .account import TranscriptAccount
from .draft import Draft, Record, finish
from .source import Source
from .usages import Counts, inside
from .values import seconds

NAME = "aider"

_BEGINS = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_CLAIMED = re.compile(r"^\s*# aider chat started at \d{4}-\d\d-\d\d", re.MULTILINE)
_TOKENS = re.compile(
    r"> Tokens: ([\d.,]+[kM]?) sent(?:, ([\d.,]+[kM]?) cache write)?(?:, ([\d.,]+[kM]?) cache hit)?, ([\d.,]+[kM]?) received"
)
_MODEL = re.compile(r"> (?:Main model|Model): (\S+)")
_COMMAND = re.compile(r"/([a-z-]+)(?:\s+|$)|!")
_ASKING = frozenset({"ask", "code", "architect", "context", "help"})
"""Commands whose words are for the model."""


def claims(value: object) -> bool:
    """Whether the text has the line that begins a session."""
    return isinstance(value, str) and _CLAIMED.search(value) is not None


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - aider has no sub-agents
    """The sessions in the file, one for each start of aider in which something was said.

    Raises:
        TranscriptError: Nobody says anything in it.
    """
    lines = source.text().split("\n")
    if lines and not lines[-1]:
        lines.pop()
    marked = any(line.startswith("#### ") and line.rstrip("\r").endswith("  ") for line in lines)
    drafts: list[_Chat] = []
    for number, line in enumerate(lines, 1):
        begun = _BEGINS.match(line)
        if begun or not drafts:
            if drafts:
                drafts[-1].end()
            drafts.append(_Chat(source, begun[1] if begun else "", number, marked=marked))
        drafts[-1].take(number, line)
    for chat in drafts[-1:]:
        chat.end()
    return finish(NAME, source, [chat.draft for chat in drafts])


class _Chat:
    """One session, as its lines are read."""

    def __init__(self, source: Source, started: str, line: int, *, marked: bool) -> None:
        """
        Args:
            source: The file.
            started: When, in the words of its first line; empty for what stands before any such line.
            line: Its first.
            marked: Whether aider's own lines end in two spaces, as they do until an editor trims them.
        """
        self.draft = Draft(NAME, source, f"{source.path.stem}:{line}", {"started": started} if started else {})
        self._time = seconds(started) or 0.0
        self._marked = marked
        self._asked: list[tuple[Record, str]] = []
        self._said: list[tuple[Record, str]] = []
        self._response = ""
        self._reported = False

    def take(self, number: int, line: str) -> None:
        """Reads one line."""
        record = self.draft.record(number)
        own = not self._marked or line.rstrip("\r").endswith("  ")
        if _BEGINS.match(line):
            record.skip("begins a session")
        elif line.startswith("#### ") and own:
            self._answer()
            self._asked.append((record, line[5:].strip()))
        elif line.startswith(">") and (own or not self._said):
            self._question()
            self._note(record, line)
        elif line.strip() or self._said:
            self._question()
            self._said.append((record, line.rstrip("\r")))
        else:
            self._question()  # lines of one message have no blank ones between them that are not the user's own
            record.skip("a blank line")

    def end(self) -> None:
        """What was begun is complete."""
        self._question()
        self._answer()

    def _note(self, record: Record, line: str) -> None:
        record.skip("a message of aider's to the user")
        if found := _MODEL.match(line):
            self.draft.metadata["model"] = found[1]
        if found := _TOKENS.match(line):
            self._answer()
            if self._response and not self._reported:
                self._reported = True
                self.draft.report(self._response, _usage(found))
            self._response = ""

    def _question(self) -> None:
        """The user's lines that follow each other are one message."""
        if not self._asked:
            return
        lines, self._asked = self._asked, []
        first = lines[0][0]
        text = "\n".join(line for _, line in lines).strip()
        self._response = ""
        command = _COMMAND.match(text)
        if command is not None:
            text = text[command.end() :] if command[1] in _ASKING else ""
        if not text:
            for record, _ in lines:
                record.skip("a command of aider's")
            return
        self._put(Message("user", text, id=self.draft.new_id("", first), created_at=self._time), lines)

    def _answer(self) -> None:
        """The model's lines since the last question or report. Blank ones at the end are no part of it."""
        lines, self._said = self._said, []
        while lines and not lines[-1][1].strip():
            lines.pop()[0].skip("a blank line")
        if not lines:
            return
        if not self._response:
            self._response, self._reported = f"L{lines[0][0].place}", False
        text = "\n".join(line for _, line in lines)
        self._put(Message("assistant", text, id=self.draft.new_id("", lines[0][0]), created_at=self._time), lines, self._response)

    def _put(self, message: Message, lines: list[tuple[Record, str]], response: str = "") -> None:
        self.draft.put(lines[0][0], message, response)
        reason = f"part of the message on line {lines[0][0].place}"  # one text for thousands of lines
        for record, _ in lines[1:]:
            record.merge(reason)


def _usage(found: re.Match[str]) -> Counts:
    """The usage of a report, as far as aider rounds it."""
    sent, write, read, received = (_count(text) for text in found.groups())
    return inside(sent, read, write, received)


def _count(text: str | None) -> int:
    if not text:
        return 0
    digits = text.rstrip("kM").replace(",", "")
    scale = {"k": 1_000, "M": 1_000_000}.get(text[-1], 1)
    try:
        return min(round(float(digits) * scale), 10**15)
    except (ValueError, OverflowError):
        return 0
