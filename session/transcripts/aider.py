"""Reads aider's chat history, a Markdown file.

1. `#### ` lines are the user's, `> ` lines are aider's own, all others are the model's.
2. Every line that aider marks this way ends in two spaces. Headings and quotations that the model wrote do not.
   If an editor has removed the spaces from the file, the prefix alone decides.
"""

from __future__ import annotations

import re

from session.items import Message

from .account import TranscriptAccount
from .draft import Draft, finish
from .record import Record
from .requests import Request, amounts_of
from .source import Source
from .usage import Counts, dollars, split_total
from .values import seconds, text_at

NAME = "aider"
FILE = ".aider.chat.history.md"
"""The history's usual name. It lies in the folder of the project."""

_SESSION_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_ANY_SESSION_START = re.compile(r"^\s*# aider chat started at \d{4}-\d\d-\d\d", re.MULTILINE)
_TOKENS = re.compile(
    r"> Tokens: ([\d.,]+[kM]?) sent(?:, ([\d.,]+[kM]?) cache write)?(?:, ([\d.,]+[kM]?) cache hit)?, ([\d.,]+[kM]?) received"
)
_COST = re.compile(r"\. Cost: \$(\d[\d,]*(?:\.\d+)?|\.\d+) (?:message|request|send)")
_MODEL = re.compile(r"> (?:Main model|Model): (\S+)")
_COMMAND = re.compile(r"/([a-z-]+)(?:\s+|$)|!")
_PROMPT_COMMANDS = frozenset({"ask", "code", "architect", "context", "help"})
"""Commands whose text goes to the model."""


def claims(value: object) -> bool:
    """Return True if the text has a line that starts a session."""
    return isinstance(value, str) and _ANY_SESSION_START.search(value) is not None


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - aider has no sub-agents
    """Return the sessions in the file: one for each start of aider with at least one message.

    Raises:
        TranscriptError: The file contains no messages.
    """
    return finish(NAME, source, [chat.draft for chat in _chats(source)])


def _chats(source: Source) -> list[_AiderChat]:
    """Return the sessions in the file, those without a message too."""
    lines = source.text().split("\n")
    if lines and not lines[-1]:
        lines.pop()
    has_marks = any(line.startswith("#### ") and _is_marked(line) for line in lines)
    chats: list[_AiderChat] = []
    for number, line in enumerate(lines, 1):
        start = _SESSION_START.match(line)
        if start or not chats:
            if chats:
                chats[-1].end()
            chats.append(_AiderChat(source, start[1] if start else "", number, has_marks=has_marks))
        chats[-1].read_line(number, line)
    for chat in chats[-1:]:
        chat.end()
    return chats


def requests_in(source: Source) -> list[Request]:
    """Return the requests that the file reports tokens for, with their price if it states one. aider rounds both.

    Raises:
        TranscriptError: The file cannot be read.
    """
    return [request for chat in _chats(source) for request in chat.requests]


def _is_marked(line: str) -> bool:
    return line.rstrip("\r").endswith("  ")


class _AiderChat:
    """Reads the lines of one session."""

    def __init__(self, source: Source, started: str, first_line: int, *, has_marks: bool) -> None:
        """
        Args:
            source: The file.
            started: Start time as written in the session's first line; empty for lines before any such line.
            first_line: Number of the session's first line.
            has_marks: True if aider's lines still end in two spaces.
        """
        self._source = source
        self.draft = Draft(NAME, source, f"{source.path.stem}:{first_line}", {"started": started})
        self._time = seconds(started) or 0.0
        self._has_marks = has_marks
        self._prompt: list[tuple[Record, str]] = []  # lines of the user's message that is being read
        self._reply: list[tuple[Record, str]] = []  # lines of the model's message that is being read
        self._response = ""
        self._is_reported = False
        self._started = started
        self.requests: list[Request] = []

    def read_line(self, number: int, line: str) -> None:
        """Read one line."""
        record = self.draft.record(number)
        may_be_aiders = not self._has_marks or _is_marked(line)
        if _SESSION_START.match(line):
            record.skip("start of a session")
        elif line.startswith("#### ") and may_be_aiders:
            self._end_reply()
            self._prompt.append((record, line[5:].strip()))
        elif line.startswith(">") and (may_be_aiders or not self._reply):
            self._end_prompt()
            self._read_notice(record, line)
        elif line.strip() or self._reply:
            self._end_prompt()
            self._reply.append((record, line.rstrip("\r")))
        else:
            self._end_prompt()  # the lines of a prompt follow each other directly
            record.skip("blank line")

    def end(self) -> None:
        """Complete the messages that are being read."""
        self._end_prompt()
        self._end_reply()

    def _read_notice(self, record: Record, line: str) -> None:
        """Read a line that aider wrote for the user, which may name the model or report tokens."""
        record.skip("a message from aider to the user")
        if match := _MODEL.match(line):
            self.draft.metadata["model"] = match[1]
        if match := _TOKENS.match(line):
            self._end_reply()
            self._add_request(match, line)
            if self._response and not self._is_reported:
                self._is_reported = True
                self.draft.report(self._response, _usage(match))
            self._response = ""

    def _add_request(self, match: re.Match[str], line: str) -> None:
        name = f"aider:{self._started}:{len(self.requests)}:{match[0]}" if self._started else ""
        cost = _COST.search(line, match.end())
        amount = None if cost is None else dollars(float(cost[1].replace(",", "")))
        model = text_at(self.draft.metadata, "model").rpartition("/")[2]
        folder = str(self._source.path.absolute().parent)
        amounts = amounts_of(_usage(match))
        self.requests.append(Request(name, self._time or None, NAME, model, folder, self.draft.id, **amounts, cost=amount))

    def _end_prompt(self) -> None:
        """Put the consecutive lines of the user as one message."""
        if not self._prompt:
            return
        lines, self._prompt = self._prompt, []
        text = "\n".join(line for _, line in lines).strip()
        self._response = ""
        command = _COMMAND.match(text)
        if command is not None:
            text = text[command.end() :] if command[1] in _PROMPT_COMMANDS else ""
        if not text:
            for record, _ in lines:
                record.skip("an aider command")
            return
        self._put(Message("user", text, id=self.draft.new_id("", lines[0][0]), created_at=self._time), lines)

    def _end_reply(self) -> None:
        """Put the model's lines since the last prompt or report as one message, without blank lines at the end."""
        lines, self._reply = self._reply, []
        while lines and not lines[-1][1].strip():
            lines.pop()[0].skip("blank line")
        if not lines:
            return
        if not self._response:
            self._response, self._is_reported = f"L{lines[0][0].number}", False
        text = "\n".join(line for _, line in lines)
        self._put(Message("assistant", text, id=self.draft.new_id("", lines[0][0]), created_at=self._time), lines, self._response)

    def _put(self, message: Message, lines: list[tuple[Record, str]], response: str = "") -> None:
        self.draft.put(lines[0][0], message, response)
        reason = f"part of the message on line {lines[0][0].number}"  # one string shared by thousands of lines
        for record, _ in lines[1:]:
            record.merge(reason)


def _usage(match: re.Match[str]) -> Counts:
    """Return the reported tokens, which aider rounds."""
    input_tokens, cache_write, cache_hit, output_tokens = (_count(text) for text in match.groups())
    return split_total(input_tokens, cache_hit, cache_write, output_tokens)


def _count(text: str | None) -> int:
    if not text:
        return 0
    digits = text.rstrip("kM").replace(",", "")
    scale = {"k": 1_000, "M": 1_000_000}.get(text[-1], 1)
    try:
        return min(round(float(digits) * scale), 10**15)
    except (ValueError, OverflowError):
        return 0
